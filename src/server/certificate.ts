import { withProblems, type OperatorLog, parsed, type WatchedFile, watchFile } from "@protoport/auth/inputs";
import { type KeyPair, maxPemBytes, readKeyPair } from "@protoport/command-line";
import type { PlantErrorCode } from "../service/index.ts";
import { valueOrThrow } from "./configuration-error.ts";
import type { Configuration } from "./settings.ts";

/** A server's certificate. The certificate's files are watched. */
export interface Certificate extends WatchedFile {
  readonly current: KeyPair;
  /** Registers a callback for renewed key pairs. */
  onRenewal(callback: (renewed: KeyPair) => void): void;
}

const dayMs = 86_400_000;

/** How long before expiry a warning is logged, in milliseconds. Renewal is usually 30 days before expiry. */
const expiryWarnedMs = 14 * dayMs;

/**
 * Opens a server's certificate and watches its files. Returns `undefined` for a server without TLS. If only one of the
 * files has been replaced, the old key pair stays in use until the files match. A valid key pair also stays in use if
 * the new pair has expired or is not valid yet. A future pair is used as soon as the pair becomes valid.
 *
 * @throws ConfigurationError when the files cannot be read or do not match
 */
export async function openCertificate(
  { tlsCertFile, tlsKeyFile }: Pick<Configuration, "tlsCertFile" | "tlsKeyFile">,
  log: OperatorLog,
): Promise<Certificate | undefined> {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return undefined;
  let current: KeyPair = { cert: "", key: "", validFromDate: new Date(0), validToDate: new Date(0) };
  let notify: ((renewed: KeyPair) => void) | undefined;
  const warn = (): void => {
    const isEarly = current.validFromDate.getTime() > Date.now();
    const leftMs = current.validToDate.getTime() - Date.now();
    if (!isEarly && leftMs > expiryWarnedMs) return;
    const errorCode: PlantErrorCode = "ERR_CERTIFICATE_EXPIRES";
    const [notBefore, notAfter] = [current.validFromDate.toISOString(), current.validToDate.toISOString()];
    const problem = isEarly ? "is not valid yet" : leftMs > 0 ? "expires soon" : "has expired";
    log.warn({ errorCode, certFile: tlsCertFile, notBefore, notAfter }, `certificate ${problem}`);
  };
  const watched = await watchFile({
    paths: [tlsCertFile, tlsKeyFile],
    what: "certificate",
    limitBytes: maxPemBytes,
    log,
    apply: (cert, key) => {
      try {
        current = readKeyPair(cert, key, current);
      } catch (reason) {
        return withProblems(reason instanceof Error ? reason.message : String(reason));
      }
      notify?.(current);
      warn();
      return parsed({ certFile: tlsCertFile });
    },
  });
  const files = valueOrThrow(watched, "cannot use TLS_CERT_FILE and TLS_KEY_FILE: ");
  const daily = setInterval(warn, dayMs).unref();
  return {
    get current() {
      return current;
    },
    get lastReload() {
      return files.lastReload;
    },
    onRenewal: (callback) => void (notify = callback),
    reload: () => files.reload(),
    close: () => {
      clearInterval(daily);
      files.close();
    },
  };
}
