/**
 * Returns the mount point whose file system contains a real path.
 *
 * @param mountInfo - the content of /proc/self/mountinfo (proc_pid_mountinfo(5)), with one line per mount
 */
export function mountPointOf(mountInfo: string, realPath: string): string {
  let found = "/";
  for (const line of mountInfo.split("\n")) {
    // The fields are separated by single spaces. The fifth is the mount point.
    const mountPoint = unescape(line.split(" ", 5)[4] ?? "");
    const isParent = realPath === mountPoint || realPath.startsWith(`${mountPoint}/`);
    if (isParent && mountPoint.length > found.length) found = mountPoint;
  }
  return found;
}

/** The kernel writes space, tab, line feed, backslash and "#" as a backslash and three octal digits. */
function unescape(field: string): string {
  return field.replace(/\\([0-3][0-7]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
