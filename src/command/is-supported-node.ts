/**
 * Returns whether the plant store supports a Node version, such as `24.15.0`. The gateway warns of supported versions
 * that `engines` in package.json excludes because they have known vulnerabilities.
 *
 * The SQLite in older versions can lose commits in its write-ahead log. 25.8 is refused because 25.8.0 is affected,
 * although 25.8.2 is not. This module has no imports, because older Node versions must be able to load it.
 */
export function isSupportedNode(version: string): boolean {
  const [major, minor] = version.split(".");
  if (major === "24") return Number(minor) >= 15;
  return Number(major) > 25 || (major === "25" && Number(minor) >= 9);
}
