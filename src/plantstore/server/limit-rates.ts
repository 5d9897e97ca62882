import { principalKey } from "../../operators/auth/index.ts";
import { type Admit, type AdmitRequest, clientNetwork } from "../../gateway/index.ts";
import { Health } from "../../operators/gen/grpc/health/v1/health_pb.ts";
import { createRateLimit, type RateLimit } from "../../operators/operations/index.ts";

/**
 * How many calls per second are admitted; as many may come at once. Below 1, it is one call in several seconds. Without
 * a number there is no limit.
 */
export interface RateLimits {
  /** The calls of each principal, whatever its address. */
  readonly perPrincipal?: number | undefined;
  /** The calls of each address, before their credentials are looked at; a /64 network of IPv6 is one address. */
  readonly perAddress?: number | undefined;
}

/**
 * Returns an `admit` that also limits how often each address and each principal may call. Without limits it returns the
 * given function, so that they cost nothing. Health checks are not limited.
 */
export function limitRates(admit: Admit, { perPrincipal, perAddress }: RateLimits): Admit {
  const ofAddress = limitOf("address", perAddress);
  const ofPrincipal = limitOf("principal", perPrincipal);
  if (ofAddress === undefined && ofPrincipal === undefined) return admit;
  return (request) => {
    if (isHealthCheck(request)) return admit(request);
    // First, so that a client that sends a thousand wrong tokens does not have them all verified.
    ofAddress?.take(clientNetwork(request.peer.address));
    const admitted = admit(request);
    if (ofPrincipal === undefined) return admitted;
    if (admitted === undefined) return takeOfPrincipal(ofPrincipal, request);
    return admitted.then(() => takeOfPrincipal(ofPrincipal, request));
  };
}

function limitOf(name: string, callsPerSecond: number | undefined): RateLimit | undefined {
  return callsPerSecond === undefined ? undefined : createRateLimit({ name, callsPerSecond });
}

function takeOfPrincipal(limit: RateLimit, { contextValues }: AdmitRequest): void {
  const principal = contextValues.get(principalKey);
  // Two issuers may have the same subject. Neither contains a line break.
  if (principal !== undefined) limit.take(`${principal.issuer ?? ""}\n${principal.subject}`);
}

function isHealthCheck({ procedure }: AdmitRequest): boolean {
  return procedure?.startsWith(`/${Health.typeName}/`) === true;
}
