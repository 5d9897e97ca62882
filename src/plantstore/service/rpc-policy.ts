import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { nearestName } from "@plantstore/operators/inputs";

/** The scope that an RPC of the plant store requires, and its description in OpenAPI. */
interface RpcPolicy {
  /** The scope that a token needs, if its scopes count. */
  readonly scope: string;
  /** The description of the successful response. */
  readonly success: string;
  /** Whether an `Idempotency-Key` makes repeated requests one. */
  readonly takesIdempotencyKey: boolean;
}

// An RPC without a row does not compile; otherwise a new one would be open to every token.
const policies: Readonly<Record<keyof typeof PlantService.method, RpcPolicy>> = {
  deletePlant: { scope: "plants:delete", success: "The plant is deleted.", takesIdempotencyKey: true },
};

const byProcedure: ReadonlyMap<string, RpcPolicy> = new Map(
  Object.entries(policies).map(([localName, policy]) => {
    const name = PlantService.methods.find((method) => method.localName === localName)?.name;
    return [`/${PlantService.typeName}/${name}`, policy];
  }),
);

/** All scopes that the plant store requires. */
export const plantScopes: readonly string[] = [...new Set([...byProcedure.values()].map(({ scope }) => scope))];

/** Returns what is wrong with a scope that no RPC requires, because a token with it alone could do nothing. */
export function plantScopeProblem(scope: string): string | undefined {
  if (plantScopes.includes(scope)) return undefined;
  const nearest = nearestName(scope, plantScopes);
  const meant = nearest === undefined ? `there is only ${plantScopes.join(", ")}` : `did you mean ${nearest}?`;
  return `nothing requires the scope ${scope}; ${meant}`;
}

/**
 * Returns the policy of a procedure (`/package.Service/Method`), or `undefined` if it does not belong to the plant
 * store: health is open, and reflection needs a token but no scope.
 */
export function policyOf(procedure: string): RpcPolicy | undefined {
  return byProcedure.get(procedure);
}
