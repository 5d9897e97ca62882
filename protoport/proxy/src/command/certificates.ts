import { X509Certificate } from "node:crypto";
import { parseCertificates, readKeyPair, validityProblem } from "@protoport/command-line";
import { messageOf } from "@protoport/gateway/errors";
import type { Notices } from "./notices.ts";
import type { CertificateFiles, CertificatePair } from "./pem-files.ts";
import type { ProxySettings } from "./proxy-settings.ts";

/** The certificate that is served, until a reload replaces it. */
export class ServedCertificate {
  readonly path: string;
  /** Time at which the files were last loaded, in ms since 1970. */
  lastSuccessMs: number = Date.now();
  current: CertificatePair;
  readonly #files: CertificateFiles;
  /** Why the last reload failed. After a failed reload, the previous certificate stays in use. */
  #reloadProblem: string | undefined;

  /** @throws InputError for files that cannot be read */
  constructor(files: CertificateFiles) {
    this.path = files.path;
    this.current = files.read();
    this.#files = files;
  }

  /** Why the last reload failed, or why clients now reject the certificate in use, which may expire meanwhile. */
  get problem(): string | undefined {
    if (this.#reloadProblem !== undefined)
      return `cannot reload the certificate: ${this.#reloadProblem}; the previous one stays in use`;
    const invalid = validityProblem(leafCertificateOf(this.current));
    return invalid && `the certificate in use ${invalid}`;
  }

  /** Logs a failed reload as long as it lasts, and an invalid certificate once, because it may become valid. */
  report(notices: Pick<Notices, "problem" | "state">): void {
    const hasFailed = this.#reloadProblem !== undefined;
    notices.problem("certificate", hasFailed ? this.problem : undefined);
    notices.state("certificate in use", hasFailed ? [] : [this.problem].flatMap((problem) => problem ?? []), "");
  }

  /**
   * Reads the files again. A certificate that does not match its key, has expired or is not valid yet never replaces a
   * valid certificate.
   *
   * @returns whether the new files are in use
   */
  reload(): boolean {
    try {
      const pair = this.#files.read();
      readKeyPair(pair.cert, pair.key, leafCertificateOf(this.current));
      this.current = pair;
      this.#reloadProblem = undefined;
      this.lastSuccessMs = Date.now();
      return true;
    } catch (error) {
      this.#reloadProblem = messageOf(error);
      return false;
    }
  }
}

/** Returns the leaf certificate, which is the first in the chain and belongs to the key. */
function leafCertificateOf({ cert }: CertificatePair): X509Certificate {
  return new X509Certificate(cert);
}

/**
 * Checks the certificates in settings.
 *
 * @throws SettingsProblem if certificate and key do not match, cannot be parsed, have expired or are not valid yet
 */
export function requireCertificates({ tls: files, upstreams, problemAt }: ProxySettings): void {
  const tls = files?.read();
  try {
    if (tls !== undefined) readKeyPair(tls.cert, tls.key);
  } catch (error) {
    throw problemAt("listen.tls.cert", `cannot be used with its key: ${messageOf(error)}`);
  }
  const requireValid = (path: string, certificates: readonly X509Certificate[]): void => {
    const problems = certificates.map(validityProblem);
    if (problems.length === 0 || problems.includes(undefined)) return;
    throw problemAt(path, `has a certificate that ${problems[0]}`);
  };
  const certificatesOf = (path: string, pem: unknown): readonly X509Certificate[] => {
    try {
      return parseCertificates(String(pem));
    } catch (error) {
      throw problemAt(path, `has a certificate that cannot be read: ${messageOf(error)}`);
    }
  };
  // The first certificate in a chain and at least one authority must be valid now.
  requireValid("listen.tls.cert", certificatesOf("listen.tls.cert", tls?.cert).slice(0, 1));
  for (const [at, { upstream }] of upstreams.entries()) {
    const path = `upstreams[${at}].tls`;
    requireValid(`${path}.cert`, certificatesOf(`${path}.cert`, upstream.tls?.cert).slice(0, 1));
    requireValid(`${path}.ca`, certificatesOf(`${path}.ca`, upstream.tls?.ca));
  }
}
