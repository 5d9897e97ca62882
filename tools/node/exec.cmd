@rem Replaces the shell built-in exec when npm runs scripts with cmd.exe.
@%*
