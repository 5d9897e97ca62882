import { join } from "node:path";
import { projectFolder } from "../../../protoport/testing/src/process/child-program.ts";
import { tarballOf, tarballsIn, type Tarballs } from "../../../protoport/test/support/package/user-project.ts";

/** The tarballs of both houses, by the names under which they are installed. */
export type HouseTarballs = Tarballs & { readonly plantstore: string };

/** Returns the tarballs of both houses that a folder has, by default those that this suite's script has packed. */
export function packedHouses(folder: string = join(projectFolder, "dist")): HouseTarballs {
  return { ...tarballsIn(folder), plantstore: tarballOf("plantstore", folder) };
}
