import { openTokenVerifier, type TokenVerifier } from "../../operators/auth/index.ts";
import type { Log } from "../../operators/operations/index.ts";
import { ConfigurationError } from "./configuration-error.ts";
import { type CredentialConfiguration, tokenSourcesOf } from "./credential-settings.ts";
import { plantScopeProblem } from "./rpc-policy.ts";

/**
 * Opens the verifier of all configured sources of tokens, or returns `undefined` when there is none. The caller closes
 * it.
 *
 * @throws ConfigurationError when a configured file has wrong content
 */
export async function openVerifier(
  configuration: CredentialConfiguration,
  log: Log,
): Promise<TokenVerifier | undefined> {
  const sources = tokenSourcesOf(configuration);
  if (sources === undefined) return undefined;
  const verifier = await openTokenVerifier({ ...sources, scopeProblem: plantScopeProblem }, log);
  if (verifier.kind === "value") return verifier.value;
  throw new ConfigurationError(verifier.problems);
}
