"""The settings: what a user can set, where each value comes from, and changing one."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.config.edit import Saved as Saved
    from treadle.app.config.edit import key_path as key_path
    from treadle.app.config.edit import redirects as redirects
    from treadle.app.config.edit import set_value as set_value
    from treadle.app.config.edit import unset_value as unset_value
    from treadle.app.config.hook_settings import HookEvent as HookEvent
    from treadle.app.config.layers import WORKSPACE_FILE as WORKSPACE_FILE
    from treadle.app.config.layers import load_settings as load_settings
    from treadle.app.config.layers import read_layers as read_layers
    from treadle.app.config.mistakes import require_key as require_key
    from treadle.app.config.own_keys import KEY_ACTIONS as KEY_ACTIONS
    from treadle.app.config.own_keys import key_sequence as key_sequence
    from treadle.app.config.places import SERVED_PLACE as SERVED_PLACE
    from treadle.app.config.places import config_file as config_file
    from treadle.app.config.places import data_directory as data_directory
    from treadle.app.config.places import outputs as outputs
    from treadle.app.config.places import program_log as program_log
    from treadle.app.config.sections import Colours as Colours
    from treadle.app.config.sections import Editing as Editing
    from treadle.app.config.sections import Settings as Settings
    from treadle.app.config.setting_lines import dotted as dotted
    from treadle.app.reports.hook_list import NO_HOOKS as NO_HOOKS
    from treadle.app.reports.hook_list import hook_text as hook_text
    from treadle.app.reports.hook_list import list_hooks as list_hooks
    from treadle.app.reports.memory_list import file_to_edit as file_to_edit
    from treadle.app.reports.memory_list import forget as forget
    from treadle.app.reports.memory_list import memory_lines as memory_lines
    from treadle.app.reports.memory_list import memory_text as memory_text
    from treadle.app.reports.memory_list import remember_text as remember_text
    from treadle.app.reports.origins import SettingLine as SettingLine
    from treadle.app.reports.origins import setting_lines as setting_lines
    from treadle.app.reports.rule_list import prompt_rules as prompt_rules
    from treadle.app.reports.rule_list import turn_rule as turn_rule
    from treadle.app.reports.setting_table import SettingRow as SettingRow
    from treadle.app.reports.setting_table import setting_rows as setting_rows
    from treadle.app.session.rules.memory_files import MemoryOf as MemoryOf
    from treadle.app.session.shared.borrowed_terminal import borrowed_terminal as borrowed_terminal
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.config.edit": "Saved key_path redirects set_value unset_value",
            "treadle.app.config.hook_settings": "HookEvent",
            "treadle.app.config.setting_lines": "dotted",
            "treadle.app.config.mistakes": "require_key",
            "treadle.app.config.own_keys": "KEY_ACTIONS key_sequence",
            "treadle.app.config.sections": "Colours Editing Settings",
            "treadle.app.config.layers": "WORKSPACE_FILE load_settings read_layers",
            "treadle.app.config.places": "SERVED_PLACE config_file data_directory outputs program_log",
            "treadle.app.reports.hook_list": "NO_HOOKS hook_text list_hooks",
            "treadle.app.reports.memory_list": "file_to_edit forget memory_lines memory_text remember_text",
            "treadle.app.reports.origins": "SettingLine setting_lines",
            "treadle.app.reports.rule_list": "prompt_rules turn_rule",
            "treadle.app.reports.setting_table": "SettingRow setting_rows",
            "treadle.app.session.rules.memory_files": "MemoryOf",
            "treadle.app.session.shared.borrowed_terminal": "borrowed_terminal",
        },
    )
