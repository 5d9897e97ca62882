import { ConfigurationError } from "./configuration-error.ts";
import { silentLog } from "../operations/index.ts";
import { checkPlantStore } from "../plants/index.ts";
import { openVerifier } from "./open-verifier.ts";
import type { Configuration } from "./settings.ts";
import { readTlsFiles, type TlsFiles, tlsFilesOf } from "./tls-files.ts";

/**
 * Checks what a server with this configuration would open: the files of credentials and keys, the certificate, the
 * store. Changes nothing, so it may run while a server uses the same store.
 *
 * @returns why tokens cannot be verified right now, such as an issuer that does not answer; `undefined` while they can
 * @throws ConfigurationError when a file has wrong content, or the certificate has expired; StoreOpenError when the store cannot be used
 */
export async function checkConfiguration(configuration: Configuration): Promise<string | undefined> {
  const tlsFiles = tlsFilesOf(configuration);
  if (tlsFiles !== undefined) await checkCertificate(tlsFiles);
  const verifier = await openVerifier(configuration, silentLog);
  const problem = verifier?.problem;
  verifier?.close?.();
  const { database } = configuration;
  if (database.kind !== "memory") await checkPlantStore(database);
  return problem;
}

async function checkCertificate(files: TlsFiles): Promise<void> {
  const { notAfterMs } = await readTlsFiles(files);
  if (notAfterMs > Date.now()) return;
  throw new ConfigurationError([`the certificate of TLS_CERT_FILE expired at ${new Date(notAfterMs).toISOString()}`]);
}
