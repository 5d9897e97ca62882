/**
 * Returns the mount point of the file system that contains a path. The path must not contain symbolic links.
 *
 * @param mountInfo - the content of /proc/self/mountinfo (proc_pid_mountinfo(5)), with one line per mount
 */
export function mountPointOf(mountInfo: string, realPath: string): string {
  let found = "/";
  for (const line of mountInfo.split("\n")) {
    // A line's fields are separated by single spaces. The fifth field is the mount point.
    const mountPoint = unescape(line.split(" ", 5)[4] ?? "");
    const isParent = realPath === mountPoint || realPath.startsWith(`${mountPoint}/`);
    if (isParent && mountPoint.length > found.length) found = mountPoint;
  }
  return found;
}

/** Decodes a field. The kernel encodes space, tab, line feed, "\" and "#" as a backslash and three octal digits. */
function unescape(field: string): string {
  return field.replace(/\\([0-3][0-7]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
