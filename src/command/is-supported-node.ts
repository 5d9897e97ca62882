/**
 * Returns whether the plant store supports a Node version, such as `24.15.0`. `engines` in package.json excludes some
 * supported versions with known vulnerabilities. The gateway logs a warning for the excluded versions.
 *
 * The SQLite in older Node versions can lose commits in its write-ahead log. All 25.8 versions are refused, because
 * 25.8.0 is affected, although 25.8.2 is not. This module has no imports, because older Node versions must be able to
 * load the module.
 */
export function isSupportedNode(version: string): boolean {
  const [major, minor] = version.split(".");
  if (major === "24") return Number(minor) >= 15;
  return Number(major) > 25 || (major === "25" && Number(minor) >= 9);
}
