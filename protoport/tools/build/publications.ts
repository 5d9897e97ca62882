import { join } from "node:path";

/** Returns the name of the tarball that npm packs for a package. */
export function tarballName(name: string, version: string): string {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
}

type Command = readonly [program: string, ...args: string[]];

/** The commands that publish one package in a release. */
export interface Publication {
  /** The package's name and version, such as `@protoport/gateway@0.2.0`. */
  readonly id: string;
  /** A command that prints the version if the registry has it. Otherwise, the command prints nothing or fails. */
  readonly find: Command;
  /** A command that publishes the tarball with its provenance. */
  readonly publish: Command;
}

/**
 * Returns the commands that publish a version of packages, in their order.
 *
 * @param folder - the folder with the tarballs
 */
export function publicationsOf(names: readonly string[], version: string, folder: string): Publication[] {
  // npm requires a tag for a version that is not to be installed by default.
  const tag = version.includes("-") ? ["--tag", "next"] : [];
  return names.map((name) => {
    const id = `${name}@${version}`;
    const tarball = join(folder, tarballName(name, version));
    return {
      id,
      find: ["npm", "view", id, "version"],
      publish: ["npm", "publish", "--provenance", "--access", "public", ...tag, tarball],
    };
  });
}
