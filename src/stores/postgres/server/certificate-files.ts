import { createPrivateKey, type KeyObject, type X509Certificate } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { parseCertificates, pemBytesMax, readRegularFileSync, validityProblem } from "@protoport/command-line";
import { StoreOpenError } from "../../contract/store-open-error.ts";

/** The contents of the PEM files, as TLS options. */
export interface PemFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** The paths of the PEM files, by TLS option. */
export type PemPaths = ReadonlyMap<keyof PemFiles, string>;

/** The certificate files in a database URL, read again for each connection, because certificates are rotated. */
export class CertificateFiles {
  readonly #paths: PemPaths;
  #files: PemFiles;

  /** @throws StoreOpenError if a file cannot be read or is invalid, or if the key does not belong to the certificate */
  constructor(paths: PemPaths) {
    this.#paths = paths;
    this.#files = this.#toFiles(this.paths.map(readPem));
    this.#check(this.#files);
  }

  get paths(): readonly string[] {
    return [...this.#paths.values()];
  }

  /** The files' current contents, or the previous contents if the current contents are unusable. */
  get current(): PemFiles {
    try {
      this.renew(this.paths.map(readPem));
    } catch (fault) {
      if (!(fault instanceof StoreOpenError)) throw fault;
    }
    return this.#files;
  }

  /**
   * Replaces the contents with `texts`, in the order of `paths`.
   *
   * @throws StoreOpenError if `texts` are unusable, or would replace a valid certificate with an expired or future one
   */
  renew(texts: readonly string[]): void {
    const files = this.#toFiles(texts);
    // Does not parse unchanged files, because parsing takes a hundred times as long as reading.
    if (isDeepStrictEqual(files, this.#files)) return;
    this.#check(files);
    for (const name of ["ca", "cert"] as const) {
      if (isValidNow(files[name]) || !isValidNow(this.#files[name])) continue;
      throw new StoreOpenError(`no certificate of ${this.#paths.get(name)} is valid at this time`);
    }
    this.#files = files;
  }

  #toFiles(texts: readonly string[]): PemFiles {
    return Object.fromEntries([...this.#paths.keys()].map((name, i) => [name, texts[i]]));
  }

  #check(files: PemFiles): void {
    this.#certificatesOf(files, "ca");
    const own = this.#certificatesOf(files, "cert")?.[0];
    const { key } = files;
    if (own === undefined || key === undefined || own.checkPrivateKey(this.#privateKeyOf(key))) return;
    throw new StoreOpenError(`the key in ${this.#paths.get("key")} does not belong to ${this.#paths.get("cert")}`);
  }

  #certificatesOf(files: PemFiles, name: "ca" | "cert"): readonly X509Certificate[] | undefined {
    const pem = files[name];
    if (pem === undefined) return undefined;
    const certificates = certificatesIn(pem);
    if (certificates !== undefined) return certificates;
    throw new StoreOpenError(`${this.#paths.get(name)} must contain certificates in PEM, and nothing incomplete`);
  }

  #privateKeyOf(pem: string): KeyObject {
    try {
      return createPrivateKey(pem);
    } catch (cause) {
      // Does not contain the message of `cause`, which is for programmers.
      throw new StoreOpenError(`${this.#paths.get("key")} must contain a private key in PEM, without a passphrase`, {
        cause,
      });
    }
  }
}

function readPem(path: string): string {
  try {
    return readRegularFileSync(path, pemBytesMax).toString("utf8");
  } catch (fault) {
    throw new StoreOpenError(`cannot read ${path}, which is named in the database URL`, { cause: fault });
  }
}

/** Returns the certificates in a PEM text, or `undefined` if it has none, or anything incomplete. */
function certificatesIn(pem: string): readonly X509Certificate[] | undefined {
  try {
    const certificates = parseCertificates(pem);
    return certificates.length === 0 ? undefined : certificates;
  } catch {
    return undefined;
  }
}

function isValidNow(pem: string | undefined): boolean {
  const certificates = pem === undefined ? [] : (certificatesIn(pem) ?? []);
  return certificates.some((certificate) => validityProblem(certificate) === undefined);
}
