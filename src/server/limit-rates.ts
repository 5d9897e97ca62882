import { principalKey } from "@plantstore/auth";
import { type Admit, type AdmitRequest, clientNetwork } from "@plantstore/gateway";
import { Health } from "@plantstore/gateway/health";
import { createRateLimit, type RateLimit } from "@plantstore/auth";
import type { Configuration } from "./settings.ts";

/** Calls per second, which is also the size of a burst. A rate below 1 allows one call in several seconds. */
type Rates = Partial<Pick<Configuration, "ratePerPrincipal" | "ratePerAddress">>;

/**
 * Returns an `admit` that also limits the rate of each address and each principal. Without limits it returns the same
 * function, so that they cost nothing. Health checks are not limited. The rate of a principal counts its calls from all
 * addresses. The rate of an address is checked before the credential; an IPv6 /64 network counts as one address.
 */
export function limitRates(admit: Admit, { ratePerPrincipal, ratePerAddress }: Rates): Admit {
  const ofAddress = limitOf("address", ratePerAddress);
  const ofPrincipal = limitOf("principal", ratePerPrincipal);
  if (ofAddress === undefined && ofPrincipal === undefined) return admit;
  return (request) => {
    if (request.procedure?.startsWith(`/${Health.typeName}/`) === true) return admit(request);
    // The address is checked first, so that a client with a thousand wrong tokens does not cause a thousand
    // verifications.
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
  // The key includes the issuer, because two issuers may have the same subject. Neither contains a line break.
  if (principal !== undefined) limit.take(`${principal.issuer ?? ""}\n${principal.subject}`);
}
