import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { nearestName } from "@plantstore/http";

/**
 * An RPC's effect. Deletions accept an `Idempotency-Key`, wait in the store's queue, and belong to the audit trail.
 * Reads do not.
 */
export type RpcEffect = "deletion" | "read";

/** The authorization, documentation and effect for a plant store RPC. */
interface RpcPolicy {
  /** The scope that a token must have, unless it has all scopes. */
  readonly scope: string;
  /** The successful response's description. */
  readonly successDescription: string;
  readonly effect: RpcEffect;
}

// The type requires a policy for every RPC, because an RPC without a policy could be called with any valid token.
const policies: Readonly<Record<keyof typeof PlantService.method, RpcPolicy>> = {
  deletePlant: {
    scope: "plants:delete",
    successDescription: "The plant is deleted.",
    effect: "deletion",
  },
};

const byProcedure: ReadonlyMap<string, RpcPolicy> = new Map(
  Object.entries(policies).map(([localName, policy]) => {
    const name = PlantService.methods.find((method) => method.localName === localName)?.name;
    return [`/${PlantService.typeName}/${name}`, policy];
  }),
);

/** All scopes that the plant store requires. */
export const plantScopes: readonly string[] = [...new Set([...byProcedure.values()].map(({ scope }) => scope))];

/** Returns an error message for a scope that no RPC requires, otherwise `undefined`. */
export function plantScopeProblem(scope: string): string | undefined {
  if (plantScopes.includes(scope)) return undefined;
  const nearest = nearestName(scope, plantScopes);
  const hint = nearest === undefined ? `; scopes are ${plantScopes.join(", ")}` : `, did you mean "${nearest}"?`;
  return `unknown scope ${JSON.stringify(scope)}${hint}`;
}

/**
 * Returns a procedure's policy (`/package.Service/Method`), or `undefined` for other services. Health requires no
 * token, and reflection requires a token but no scope.
 */
export function policyOf(procedure: string): RpcPolicy | undefined {
  return byProcedure.get(procedure);
}
