"""What a message holds besides its words: files, mentions, images, skills."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.session.files.editor_files import BufferRefusedError as BufferRefusedError
    from treadle.app.session.mentions.attachments import attach as attach
    from treadle.app.session.mentions.attachments import dragged_images as dragged_images
    from treadle.app.session.mentions.attachments import image_block as image_block
    from treadle.app.session.mentions.attachments import read_attached as read_attached
    from treadle.app.session.mentions.enclosing import enclose as enclose
    from treadle.app.session.mentions.mention_text import MENTION_WORDS as MENTION_WORDS
    from treadle.app.session.mentions.mention_text import find_named as find_named
    from treadle.app.session.mentions.mention_writing import Mention as Mention
    from treadle.app.session.mentions.mention_writing import complete as complete
    from treadle.app.session.mentions.mention_writing import mention_at as mention_at
    from treadle.app.session.mentions.mention_writing import written_path as written_path
    from treadle.app.session.mentions.mentionable import mentionable_paths as mentionable_paths
    from treadle.app.session.mentions.path_search import Index as Index
    from treadle.app.session.mentions.path_search import PathSearch as PathSearch
    from treadle.app.session.rules.skills import find_skills as find_skills
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.session.mentions.attachments": "attach dragged_images image_block read_attached",
            "treadle.app.session.files.editor_files": "BufferRefusedError",
            "treadle.app.session.mentions.enclosing": "enclose",
            "treadle.app.session.mentions.mention_text": "MENTION_WORDS find_named",
            "treadle.app.session.mentions.mention_writing": "Mention complete mention_at written_path",
            "treadle.app.session.mentions.mentionable": "mentionable_paths",
            "treadle.app.session.mentions.path_search": "Index PathSearch",
            "treadle.app.session.rules.skills": "find_skills",
        },
    )
