import manifest from "../../package.json" with { type: "json" };

/** Returns the version of this package. The build inlines the version from package.json. */
export function packageVersion(): string {
  return manifest.version;
}
