/** Returns the mount point for a path without symbolic links, from /proc/self/mountinfo (proc_pid_mountinfo(5)). */
export function mountPointOf(mountInfo: string, realPath: string): string {
  let found = "/";
  for (const line of mountInfo.split("\n")) {
    // The fifth field is the mount point.
    const mountPoint = unescape(line.split(" ", 5)[4] ?? "");
    const isParent = realPath === mountPoint || realPath.startsWith(`${mountPoint}/`);
    if (isParent && mountPoint.length > found.length) found = mountPoint;
  }
  return found;
}

// The kernel encodes space, tab, line feed, "\" and "#" as a backslash and three octal digits.
function unescape(field: string): string {
  return field.replace(/\\([0-3][0-7]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
