import { readFile } from "node:fs/promises";
import type { Log } from "../operations/log.ts";
import { ConfigurationError } from "./configuration-error.ts";

/** Where a certificate chain and its key are, both in PEM. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** A certificate chain and its key, found to fit each other. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Files that are read again when they change. */
export interface FollowedTlsFiles {
  /** Reads them now; never rejects: what does not fit is logged, and the old certificate stays. */
  reload(): Promise<void>;
  close(): void;
}

/** Milliseconds between two looks at the files: they are renewed days before they expire. */
const lookIntervalMs = 10_000;

/**
 * Reads a certificate and its key.
 *
 * @throws ConfigurationError when they cannot be read or do not fit each other
 */
export async function readTlsFiles({ certFile, keyFile }: TlsFiles): Promise<TlsMaterial> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
    // Loaded where there is TLS only: it is 10 ms of a start.
    process.getBuiltinModule("node:tls").createSecureContext({ cert, key });
    return { cert, key };
  } catch (reason) {
    const why = reason instanceof Error ? reason.message : String(reason);
    throw new ConfigurationError([`TLS_CERT_FILE and TLS_KEY_FILE do not make a TLS server: ${why}`]);
  }
}

/**
 * Follows the files, and hands on what they hold each time it is another pair that fits.
 *
 * Between the writing of the two files they do not fit each other; then the old pair is kept until
 * they do. Contents are compared, since times do not tell with Kubernetes' symbolic links.
 */
export function followTlsFiles(
  files: TlsFiles,
  first: TlsMaterial,
  take: (material: TlsMaterial) => void,
  log: Log,
): FollowedTlsFiles {
  let current = first;
  let lastProblem = "";

  async function reload(): Promise<void> {
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
  return { reload, close: () => clearInterval(timer) };
}
