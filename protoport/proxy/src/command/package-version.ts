import manifest from "../../package.json" with { type: "json" };

/** Returns this package's version, which the build inlines from package.json. */
export function proxyVersion(): string {
  return manifest.version;
}
