import manifest from "../../package.json" with { type: "json" };

/** Returns the version of this package, which the build inlines from package.json. */
export function packageVersion(): string {
  return manifest.version;
}
