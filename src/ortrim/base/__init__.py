"""What every program needs: commands, files, cache, archives, downloads, console. Knows nothing of models or builds."""
