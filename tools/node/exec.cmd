@rem Stands for the exec of POSIX shells where npm runs the scripts of package.json with cmd.exe.
@%*
