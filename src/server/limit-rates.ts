import { principalKey } from "@plantstore/auth";
import { type Admit, type AdmitRequest, clientNetwork } from "@plantstore/gateway";
import { Health } from "@plantstore/gateway/health";
import { createRateLimit, type RateLimit } from "@plantstore/auth";
import type { Configuration } from "./settings.ts";

/** How many calls per second are admitted; as many may come at once. Below 1, it is one call in several seconds. */
type Rates = Partial<Pick<Configuration, "ratePerPrincipal" | "ratePerAddress">>;

/**
 * Returns an `admit` that also limits how often each address and each principal may call. Without limits it returns the
 * given function, so that they cost nothing. Health checks are not limited. The calls of a principal count whatever its
 * address; those of an address before their credentials are looked at, and a /64 network of IPv6 is one address.
 */
export function limitRates(admit: Admit, { ratePerPrincipal, ratePerAddress }: Rates): Admit {
  const ofAddress = limitOf("address", ratePerAddress);
  const ofPrincipal = limitOf("principal", ratePerPrincipal);
  if (ofAddress === undefined && ofPrincipal === undefined) return admit;
  return (request) => {
    if (request.procedure?.startsWith(`/${Health.typeName}/`) === true) return admit(request);
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
