"""MCP servers: which are configured, and how they do."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.reports.server_checks import add_server as add_server
    from treadle.app.reports.server_checks import check_server as check_server
    from treadle.app.reports.server_checks import log_text as log_text
    from treadle.app.reports.server_checks import named_server as named_server
    from treadle.app.reports.server_checks import remove_server as remove_server
    from treadle.app.reports.server_checks import server_list as server_list
    from treadle.app.reports.server_checks import shown_tools as shown_tools
    from treadle.app.reports.server_checks import sign_in_to as sign_in_to
    from treadle.app.reports.server_checks import switch_server as switch_server
    from treadle.app.servers.configured import ServerOrigin as ServerOrigin
    from treadle.app.servers.configured import configured_servers as configured_servers
    from treadle.app.servers.configured import read_servers as read_servers
    from treadle.app.servers.session_servers import health_lines as health_lines
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.reports.server_checks": """
                add_server check_server log_text named_server remove_server server_list shown_tools sign_in_to
                switch_server
            """,
            "treadle.app.servers.configured": "ServerOrigin configured_servers read_servers",
            "treadle.app.servers.session_servers": "health_lines",
        },
    )
