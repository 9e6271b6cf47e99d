"""The program around sessions: exit codes, errors as a person reads them, plain output, serving HTTP."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.config.places import unknown_home as unknown_home
    from treadle.app.demo import TASK as TASK
    from treadle.app.demo import open_demo as open_demo
    from treadle.app.demo import what_next as what_next
    from treadle.app.errors.error_report import describe_crash as describe_crash
    from treadle.app.errors.error_report import describe_error as describe_error
    from treadle.app.errors.error_report import describe_model_error as describe_model_error
    from treadle.app.errors.error_report import describe_unusable_folder as describe_unusable_folder
    from treadle.app.errors.error_report import four_lines as four_lines
    from treadle.app.errors.error_report import is_own_folder as is_own_folder
    from treadle.app.errors.error_report import print_notice as print_notice
    from treadle.app.errors.error_report import resume_line as resume_line
    from treadle.app.errors.error_report import write_log as write_log
    from treadle.app.errors.exits import Exit as Exit
    from treadle.app.errors.exits import exit_code as exit_code
    from treadle.app.errors.exits import exit_of_error as exit_of_error
    from treadle.app.errors.explanations import EXPLANATIONS as EXPLANATIONS
    from treadle.app.errors.explanations import errors_page as errors_page
    from treadle.app.errors.explanations import nearest_codes as nearest_codes
    from treadle.app.errors.library_logging import log_quietly as log_quietly
    from treadle.app.errors.library_logging import log_quietly_inside as log_quietly_inside
    from treadle.app.hosting.certificate import page_certificate as page_certificate
    from treadle.app.hosting.descriptor_lines import MOST_UNREAD_BYTES as MOST_UNREAD_BYTES
    from treadle.app.hosting.descriptor_lines import own_stdout as own_stdout
    from treadle.app.hosting.descriptor_lines import read_lines as read_lines
    from treadle.app.hosting.descriptor_lines import write_whole as write_whole
    from treadle.app.hosting.http_serving import HttpServer as HttpServer
    from treadle.app.hosting.http_serving import is_loopback as is_loopback
    from treadle.app.hosting.http_serving import listen as listen
    from treadle.app.hosting.http_serving import until_signal as until_signal
    from treadle.app.hosting.http_serving import url_host as url_host
    from treadle.app.hosting.kept_devices import KeptDevice as KeptDevice
    from treadle.app.hosting.kept_devices import KeptDevices as KeptDevices
    from treadle.app.hosting.kept_devices import keep_devices as keep_devices
    from treadle.app.hosting.kept_devices import kept_devices as kept_devices
    from treadle.app.hosting.own_editor import own_editor as own_editor
    from treadle.app.reports.line_wrapping import harmless as harmless
    from treadle.app.reports.line_wrapping import screen_width as screen_width
    from treadle.app.reports.line_wrapping import shortened as shortened
    from treadle.app.reports.line_wrapping import wrapped as wrapped
    from treadle.app.reports.line_wrapping import write_wrapped as write_wrapped
    from treadle.workspace.diagnostics.tether import tethered as tethered
    from treadle.workspace.files.folder_lock import alone as alone
    from treadle.workspace.files.private_file import write_private as write_private
    from treadle.workspace.sandbox.backend import find_bubblewraps as find_bubblewraps
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.hosting.certificate": "page_certificate",
            "treadle.app.config.places": "unknown_home",
            "treadle.app.demo": "TASK open_demo what_next",
            "treadle.app.errors.exits": "Exit exit_code exit_of_error",
            "treadle.app.errors.explanations": "EXPLANATIONS errors_page nearest_codes",
            "treadle.app.errors.library_logging": "log_quietly log_quietly_inside",
            "treadle.app.hosting.http_serving": "HttpServer is_loopback listen until_signal url_host",
            "treadle.app.hosting.kept_devices": "KeptDevice KeptDevices keep_devices kept_devices",
            "treadle.app.hosting.descriptor_lines": "MOST_UNREAD_BYTES own_stdout read_lines write_whole",
            "treadle.app.errors.error_report": """
                describe_crash describe_error describe_model_error describe_unusable_folder four_lines
                is_own_folder print_notice resume_line write_log
            """,
            "treadle.workspace.diagnostics.tether": "tethered",
            "treadle.workspace.files.folder_lock": "alone",
            "treadle.workspace.files.private_file": "write_private",
            "treadle.workspace.sandbox.backend": "find_bubblewraps",
            "treadle.app.hosting.own_editor": "own_editor",
            "treadle.app.reports.line_wrapping": "harmless screen_width shortened wrapped write_wrapped",
        },
    )
