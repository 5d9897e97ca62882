import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { nearestName } from "@protoport/gateway/options";

/**
 * Whether an RPC deletes or reads plants. A deletion accepts an `Idempotency-Key`, waits in the store's queue, and is
 * in the audit trail. A read has no key, does not wait in the queue, and is not in the audit trail.
 */
export type RpcEffect = "deletion" | "read";

/** The scope, description and effect of a plant store RPC. */
interface RpcPolicy {
  /** The scope that a token must have. A token may also have all scopes. */
  readonly scope: string;
  readonly successDescription: string;
  readonly effect: RpcEffect;
}

// The type requires a policy for every RPC. Any valid token could call an RPC without a policy.
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
 * Returns the policy for a procedure (`/package.Service/Method`). Returns `undefined` for other services. Health checks
 * require no token, and reflection requires a token but no scope.
 */
export function policyOf(procedure: string): RpcPolicy | undefined {
  return byProcedure.get(procedure);
}
