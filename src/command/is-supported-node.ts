/**
 * Returns whether the plant store runs on a version of Node, such as `24.15.0`: what `engines` in package.json says.
 *
 * The SQLite of older ones can lose its write-ahead log. All of 25.8 is refused because that of 25.8.0 can, although
 * that of 25.8.2 cannot. Imports nothing, because it must be read by an older Node too.
 */
export function isSupportedNode(version: string): boolean {
  const [major, minor] = version.split(".");
  if (major === "24") return Number(minor) >= 15;
  return Number(major) > 25 || (major === "25" && Number(minor) >= 9);
}
