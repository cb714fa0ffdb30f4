"""Reports of verification: one content; terminal, Markdown and HTML."""
