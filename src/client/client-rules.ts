import { PlantServiceService } from "../gen/grpc-js/plantstore/v1/plant_service.ts";

/** The client's rule for calls to an RPC. */
export interface ClientRule {
  /** The RPC's path, `/package.Service/Method`. */
  readonly path: string;
  /** The scope that a token must have. The error for PERMISSION_DENIED names the scope. */
  readonly scope: string;
  /** Whether the RPC deletes. Retries then need an idempotency key, because the failed call may have deleted. */
  readonly deletes: boolean;
}

/** The rule for each RPC. An RPC without a rule does not compile. every-rpc.test.ts compares rules with the server. */
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
