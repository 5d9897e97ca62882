import manifest from "../../package.json" with { type: "json" };

/** Returns the version in the package.json of this package, which the build puts into the command. */
export function packageVersion(): string {
  return manifest.version;
}
