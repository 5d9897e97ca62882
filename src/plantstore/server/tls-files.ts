import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Log } from "../../operators/operations/index.ts";
import { ConfigurationError } from "./configuration-error.ts";
import type { Configuration } from "./settings.ts";

/** The files of a certificate chain and its key, both in PEM. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Returns the files of the certificate, or `undefined` for a server without TLS. */
export function tlsFilesOf({
  tlsCertFile: certFile,
  tlsKeyFile: keyFile,
}: Pick<Configuration, "tlsCertFile" | "tlsKeyFile">): TlsFiles | undefined {
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile };
}

/** A certificate chain and its key, checked to match. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** When the certificate of the server expires (RFC 5280 §4.1.2.5), in ms since 1970: clients then refuse it. */
  readonly notAfterMs: number;
}

/** The watched files of a certificate. */
export interface FollowedTlsFiles {
  /** {@link TlsMaterial.notAfterMs} of the certificate in use. */
  readonly notAfterMs: number;
  /** Reads the files now; never rejects: a bad pair is logged, and the old certificate stays. */
  reload(): Promise<void>;
  close(): void;
}

/** Milliseconds between two checks: certificates are renewed days before they expire. */
const lookIntervalMs = 10_000;

const dayMs = 86_400_000;

/** Renewals are usual 30 days ahead; where one has failed, this leaves two weeks to mend it. */
const expiryWarnedMs = 14 * dayMs;

/**
 * Reads a certificate and its key.
 *
 * @throws ConfigurationError when they cannot be read or do not match
 */
export async function readTlsFiles({ certFile, keyFile }: TlsFiles): Promise<TlsMaterial> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
    // Loaded only for TLS: it takes 10 ms of the start.
    process.getBuiltinModule("node:tls").createSecureContext({ cert, key });
    // Of a chain it is the first. Others may be left over from an earlier one, and expired.
    return { cert, key, notAfterMs: new X509Certificate(cert).validToDate.getTime() };
  } catch (reason) {
    const why = reason instanceof Error ? reason.message : String(reason);
    throw new ConfigurationError([`TLS_CERT_FILE and TLS_KEY_FILE do not make a TLS server: ${why}`]);
  }
}

/** Warns, once a day, of a certificate that has expired or will within {@link expiryWarnedMs}. */
function createExpiryWarning({ certFile }: TlsFiles, log: Log): (material: TlsMaterial) => void {
  let warned: TlsMaterial | undefined;
  let warnedAtMs = 0;
  return (material) => {
    const leftMs = material.notAfterMs - Date.now();
    const isDue = material !== warned || performance.now() - warnedAtMs >= dayMs;
    if (leftMs > expiryWarnedMs || !isDue) return;
    [warned, warnedAtMs] = [material, performance.now()];
    const notAfter = new Date(material.notAfterMs).toISOString();
    log.warn({ certFile, notAfter }, leftMs > 0 ? "the certificate expires soon" : "the certificate has expired");
  };
}

/**
 * Watches the files, and passes on every new pair that matches.
 *
 * While only one of the two files has been replaced, they do not match, and the old pair stays. Contents are compared,
 * because the timestamps of Kubernetes' symbolic links say nothing.
 */
export function followTlsFiles(
  files: TlsFiles,
  first: TlsMaterial,
  take: (material: TlsMaterial) => void,
  log: Log,
): FollowedTlsFiles {
  let current = first;
  let lastProblem = "";
  const warn = createExpiryWarning(files, log);
  warn(first);

  async function reload(): Promise<void> {
    await takeWhatIsNew();
    warn(current);
  }

  async function takeWhatIsNew(): Promise<void> {
    try {
      const found = await readTlsFiles(files);
      lastProblem = "";
      if (found.cert.equals(current.cert) && found.key.equals(current.key)) return;
      take(found);
      current = found;
      log.info({ certFile: files.certFile }, "certificate reloaded");
    } catch (reason) {
      const problem = reason instanceof Error ? reason.message : String(reason);
      if (problem !== lastProblem) log.warn({ problem }, "certificate refused, the one before stays");
      lastProblem = problem;
    }
  }

  const timer = setInterval(() => void reload(), lookIntervalMs).unref();
  return {
    get notAfterMs() {
      return current.notAfterMs;
    },
    reload,
    close: () => clearInterval(timer),
  };
}
