"""The program around sessions: exit codes, errors as a person reads them, plain output, serving HTTP."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.certificate import PageCertificate as PageCertificate
    from treadle.app.certificate import page_certificate as page_certificate
    from treadle.app.demo import TASK as TASK
    from treadle.app.demo import open_demo as open_demo
    from treadle.app.demo import what_next as what_next
    from treadle.app.exits import Exit as Exit
    from treadle.app.exits import exit_code as exit_code
    from treadle.app.explanations import EXPLANATIONS as EXPLANATIONS
    from treadle.app.explanations import errors_page as errors_page
    from treadle.app.explanations import nearest_codes as nearest_codes
    from treadle.app.http_serving import HttpServer as HttpServer
    from treadle.app.http_serving import is_loopback as is_loopback
    from treadle.app.http_serving import listen as listen
    from treadle.app.http_serving import log_quietly as log_quietly
    from treadle.app.http_serving import until_signal as until_signal
    from treadle.app.http_serving import url_host as url_host
    from treadle.app.lines import MOST_UNREAD_BYTES as MOST_UNREAD_BYTES
    from treadle.app.lines import own_stdout as own_stdout
    from treadle.app.lines import read_lines as read_lines
    from treadle.app.lines import write_whole as write_whole
    from treadle.app.report import describe_crash as describe_crash
    from treadle.app.report import describe_error as describe_error
    from treadle.app.report import describe_model_error as describe_model_error
    from treadle.app.report import describe_no_permission as describe_no_permission
    from treadle.app.report import four_lines as four_lines
    from treadle.app.report import is_own_folder as is_own_folder
    from treadle.app.report import print_notice as print_notice
    from treadle.app.report import resume_line as resume_line
    from treadle.app.report import write_log as write_log
    from treadle.app.wrapping import harmless as harmless
    from treadle.app.wrapping import screen_width as screen_width
    from treadle.app.wrapping import shortened as shortened
    from treadle.app.wrapping import wrapped as wrapped
    from treadle.app.wrapping import write_wrapped as write_wrapped
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.certificate": "PageCertificate page_certificate",
            "treadle.app.demo": "TASK open_demo what_next",
            "treadle.app.exits": "Exit exit_code",
            "treadle.app.explanations": "EXPLANATIONS errors_page nearest_codes",
            "treadle.app.http_serving": "HttpServer is_loopback listen log_quietly until_signal url_host",
            "treadle.app.lines": "MOST_UNREAD_BYTES own_stdout read_lines write_whole",
            "treadle.app.report": """
                describe_crash describe_error describe_model_error describe_no_permission four_lines
                is_own_folder print_notice resume_line write_log
            """,
            "treadle.app.wrapping": "harmless screen_width shortened wrapped write_wrapped",
        },
    )
