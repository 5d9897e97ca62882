import type { DescService } from "@bufbuild/protobuf";
import type { Routes } from "@protoport/gateway/forward";

/** Minimum milliseconds between two reloads for unknown paths. Any caller can trigger such a reload. */
const unknownPathGapMs = 5_000;

/** Decides which unknown paths cause a reload. */
export class UnknownPaths {
  /** The known services' packages. */
  #packages: ReadonlySet<string> = new Set();
  /** The first segments in REST templates, such as `v1`. */
  #firstSegments: ReadonlySet<string> = new Set();
  #prefix = "";
  #lastReloadMs = Number.NEGATIVE_INFINITY;

  setKnown(services: readonly DescService[], { rest, prefix }: Pick<Routes, "rest" | "prefix">): void {
    this.#packages = new Set(services.map(({ file }) => file.proto.package));
    const firstSegments = rest.bindings.map(({ template }) => template.segments[0]);
    this.#firstSegments = new Set(firstSegments.flatMap((each) => (each?.kind === "literal" ? [each.text] : [])));
    this.#prefix = prefix;
  }

  /**
   * Returns whether an unknown path may belong to a new RPC, so that the descriptors should be read. A new RPC's path
   * names a known package, or starts with a REST route's first segment. Other unknown paths come from browsers and
   * scanners. Returns `true` at a limited rate.
   */
  mayBeNew(path: string): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#lastReloadMs < unknownPathGapMs) return false;
    const name = packageIn(path);
    const isOfPackage = name !== undefined && this.#packages.has(name);
    if (!isOfPackage && !this.#firstSegments.has(firstSegmentOf(path, this.#prefix))) return false;
    this.#lastReloadMs = nowMs;
    return true;
  }
}

/** Returns the package named in a path that ends with `/package.Service/Method`. */
function packageIn(path: string): string | undefined {
  const slash = path.lastIndexOf("/");
  const start = slash <= 0 ? -1 : path.lastIndexOf("/", slash - 1);
  if (start < 0) return undefined;
  const service = path.slice(start + 1, slash);
  return service.slice(0, Math.max(0, service.lastIndexOf(".")));
}

/** Returns a path's first segment after the prefix, without a verb. */
function firstSegmentOf(path: string, prefix: string): string {
  return /^[^/:]*/.exec(path.startsWith(prefix) ? path.slice(prefix.length + 1) : "")?.[0] ?? "";
}
