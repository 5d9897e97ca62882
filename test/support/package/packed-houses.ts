import { packed, tarballOf, type Tarballs } from "../../../protoport/test/support/package/user-project.ts";

/** Returns the tarballs of both houses that this suite's script has packed. */
export function packedHouses(): Tarballs & { readonly plantstore: string } {
  return { ...packed(), plantstore: tarballOf("plantstore") };
}
