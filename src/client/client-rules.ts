import { PlantServiceService } from "../gen/grpc-js/plantstore/v1/plant_service.ts";

/** The client's rule for calls to an RPC. */
export interface ClientRule {
  /** The RPC's path, `/package.Service/Method`. */
  readonly path: string;
  /** The scope that a token must have. The error for PERMISSION_DENIED names the scope. */
  readonly scope: string;
  /**
   * Whether the RPC deletes. A failed deletion may have been committed, so deletions are retried only with an
   * idempotency key. Calls to other RPCs are always retried.
   */
  readonly deletes: boolean;
}

/**
 * The rule for each RPC. The code does not compile if an RPC has no rule. The test every-rpc.test.ts compares each rule
 * with the server.
 */
export const clientRules: Readonly<Record<keyof typeof PlantServiceService, ClientRule>> = {
  deletePlant: { path: PlantServiceService.deletePlant.path, scope: "plants:delete", deletes: true },
};

const deletionPaths: ReadonlySet<string> = new Set(
  Object.values(clientRules).flatMap(({ path, deletes }) => (deletes ? [path] : [])),
);

/** Returns whether calls to this path are deletions. */
export function isDeletion(path: string): boolean {
  return deletionPaths.has(path);
}
