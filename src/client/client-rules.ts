import { PlantServiceService } from "../gen/grpc-js/plantstore/v1/plant_service.ts";

/** How the client treats an RPC's calls. */
export interface ClientRule {
  /** The path of the calls. */
  readonly path: string;
  /** The scope that a token must have, for the advice after PERMISSION_DENIED. */
  readonly scope: string;
  /**
   * Whether the RPC deletes. A deletion is sent with an idempotency key, and is retried only with a key. A failed
   * deletion may have been committed. Calls to other RPCs are always retried.
   */
  readonly deletes: boolean;
}

/**
 * Each RPC's rule. An RPC without a rule does not compile. The test every-rpc.test.ts compares each rule with the
 * server.
 */
export const clientRules: Readonly<Record<keyof typeof PlantServiceService, ClientRule>> = {
  deletePlant: { path: PlantServiceService.deletePlant.path, scope: "plants:delete", deletes: true },
};

const deletionPaths: ReadonlySet<string> = new Set(
  Object.values(clientRules).flatMap(({ path, deletes }) => (deletes ? [path] : [])),
);

/** Returns whether the calls with a path are deletions. */
export function isDeletion(path: string): boolean {
  return deletionPaths.has(path);
}
