"""The website: `make docs`. What it needs beside Sphinx and its extensions is in `docs/_site`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))

import accountable_ope  # noqa: E402

project = "accountable-ope"
author = copyright = "The accountable-ope developers"
release = version = accountable_ope.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "extension",
    "mathml",
]
exclude_patterns = ["_build", "_site", "trials"]
default_role = "literal"  # docstrings write code in single backticks; `extension` links what is public
smartquotes = False  # "--option" is two dashes
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4  # as GitHub makes them, so that links into pages are the same in both places
suppress_warnings = ["config.cache"]  # a setting that holds functions

# The types of parameters are in words, in the docstrings.
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# All checks but those of taste: a summary may be all there is, begin with the name of a variable or state a formula, parameters
# of one kind share a line ("as in ..."). That parameters, returns and examples are there is checked by tests/test_docstrings.py.
numpydoc_validation_checks = {
    *(
        "all",
        "ES01",
        "EX01",
        "SA01",
        "PR01",
        "PR02",
        "PR04",
        "PR07",
        "PR08",
        "RT01",
        "RT03",
        "RT04",
        "SS02",
        "SS05",
        "SS06",
        "YD01",
    ),
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # of a block with prompts, the commands and not what they print
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

html_theme = "pydata_sphinx_theme"
html_title = "accountable-ope"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_favicon = "_site/static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"image_light": "_site/static/logo.svg", "image_dark": "_site/static/logo.svg", "text": "accountable-ope"},
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "glossary": ["sidebar-nav-bs"]}
