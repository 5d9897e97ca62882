import { X509Certificate } from "node:crypto";
import {
  withProblems,
  type OperatorLog,
  parsed,
  type ParseResult,
  type WatchedFile,
  watchFile,
} from "@protoport/auth/inputs";
import { type CertificateValidity, pemBytesMax, validityProblem } from "@protoport/command-line";
import type { PlantErrorCode } from "../service/index.ts";
import { valueOrThrow } from "./configuration-error.ts";
import type { Configuration } from "./settings.ts";

/** A PEM certificate chain and its matching private key. */
export interface KeyPair extends CertificateValidity {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** A server's certificate. The certificate's files are watched. */
export interface Certificate extends WatchedFile {
  /** The key pair in use. */
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
  let current: KeyPair = {
    cert: Buffer.of(),
    key: Buffer.of(),
    validFromDate: new Date(0),
    validToDate: new Date(0),
  };
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
    limitBytes: pemBytesMax,
    log,
    apply: (cert, key) => {
      const pair = checkPair(Buffer.from(cert), Buffer.from(key));
      if (pair.kind === "problems") return pair;
      const problem = validityProblem(pair.value);
      if (problem !== undefined && validityProblem(current) === undefined)
        return withProblems(`the certificate ${problem}`);
      current = pair.value;
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

function checkPair(cert: Buffer, key: Buffer): ParseResult<KeyPair> {
  try {
    // Loads node:tls on demand, because loading takes 10 ms.
    process.getBuiltinModule("node:tls").createSecureContext({ cert, key });
    // Reads only the first certificate. The rest of the chain may belong to an older certificate, and have expired.
    const { validFromDate, validToDate } = new X509Certificate(cert);
    return parsed({ cert, key, validFromDate, validToDate });
  } catch (reason) {
    return withProblems(explainPairError(reason));
  }
}

/** Returns a problem that describes an OpenSSL error for an operator. */
function explainPairError(reason: unknown): string {
  const code = reason instanceof Error && "code" in reason ? String(reason.code) : "";
  if (code === "ERR_OSSL_X509_KEY_VALUES_MISMATCH") return "the private key does not belong to the certificate";
  const message = reason instanceof Error ? reason.message : String(reason);
  if (!/^ERR_OSSL_(PEM|UNSUPPORTED)/.test(code)) return message;
  return `the files must be a PEM certificate and its PEM private key, in this order (${message})`;
}
