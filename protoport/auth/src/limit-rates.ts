import { type Admit, type AdmitRequest, clientNetwork } from "@protoport/gateway";
import { Health } from "@protoport/gateway/health";
import { type OptionNames, refuseUnknownOptions } from "@protoport/gateway/options";
import { principalKey } from "./principal-context.ts";
import { createRateLimit, type RateLimit } from "./rate-limit.ts";

/** Options for {@link limitRates}. */
export interface CallRates {
  /** Maximum calls per second by each principal from all addresses, also in a burst. Unlimited by default. */
  readonly perPrincipal?: number | undefined;
  /** Maximum calls per second from each IPv4 address or IPv6 /64, also in a burst. Unlimited by default. */
  readonly perAddress?: number | undefined;
}

const callRatesNames: OptionNames<CallRates> = { perPrincipal: true, perAddress: true };

/**
 * Returns an `admit` that also limits the call rate of each address, before the credential is checked, and of each
 * principal. Without limits, returns `admit` itself. A rate below 1 allows one call in several seconds. Health checks
 * are not limited.
 *
 * @throws TypeError for unknown options
 */
export function limitRates(admit: Admit, rates: CallRates): Admit {
  refuseUnknownOptions(rates, callRatesNames, "limitRates");
  const addressLimit = limitOf("address", rates.perAddress);
  const principalLimit = limitOf("principal", rates.perPrincipal);
  if (addressLimit === undefined && principalLimit === undefined) return admit;
  const limited: Admit = (request) => {
    if (request.procedure?.startsWith(`/${Health.typeName}/`) === true) return admit(request);
    // The address is checked first, so that a thousand wrong tokens do not cause a thousand verifications.
    addressLimit?.take(clientNetwork(request.peer.address));
    const admitted = admit(request);
    if (principalLimit === undefined) return admitted;
    if (admitted === undefined || typeof admitted === "function") {
      takeForPrincipal(principalLimit, request);
      return admitted;
    }
    return admitted.then((check) => {
      takeForPrincipal(principalLimit, request);
      return check;
    });
  };
  return Object.assign(limited, { requireChecked: admit.requireChecked });
}

function limitOf(name: string, callsPerSecond: number | undefined): RateLimit | undefined {
  return callsPerSecond === undefined ? undefined : createRateLimit({ name, callsPerSecond });
}

function takeForPrincipal(limit: RateLimit, { contextValues }: AdmitRequest): void {
  const principal = contextValues.get(principalKey);
  // Subjects are unique only within an issuer. Neither issuers nor subjects can contain the line break.
  if (principal !== undefined) limit.take(`${principal.issuer ?? ""}\n${principal.subject}`);
}
