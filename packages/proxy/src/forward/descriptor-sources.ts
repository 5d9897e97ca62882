import { readFile, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { timerMsMax } from "@plantstore/gateway/exchange";
import { createGrpcTransport } from "../client/index.ts";
import { messageOf } from "@plantstore/gateway/internal/errors";
import { requireRange, type Upstream } from "../upstreams/index.ts";
import type { DescriptorSource } from "./descriptors.ts";
import { readReflection, reflectionLimits } from "./read-reflection.ts";

/** Bytes of a file of descriptors that is read. 200 MB: all of Google's APIs have 30. */
const fileMaxBytes = 200_000_000;

/** Milliseconds between two looks at a file. 250 ms: a deployment waits for it, and a look costs microseconds. */
const fileEveryMsDefault = 250;

/** Milliseconds between two readings of a server's reflection. A minute: it costs the server about one call. */
const reflectionEveryMsDefault = 60_000;

/** Milliseconds from one reading because of other servers to the next: a second, as several are replaced together. */
const serversGapMs = 1_000;

/** What an upstream's descriptors are read by. */
interface SourceOptions {
  readonly upstream: Upstream;
  /** Whether a service is passed on, by its full name. */
  readonly isProxied: (name: string) => boolean;
  readonly reloadEveryMs: number | undefined;
  /** Header fields of the calls of reflection. */
  readonly reflectionHeader: Readonly<Record<string, string>>;
}

/**
 * Returns the source of descriptors that an option names.
 *
 * @throws TypeError for a URL that names no file, RangeError for a time that is none
 */
export function toDescriptorSource(
  descriptors: Uint8Array | URL | "reflection" | DescriptorSource,
  options: SourceOptions,
): DescriptorSource {
  const { reloadEveryMs } = options;
  if (reloadEveryMs !== undefined) requireRange("reloadEveryMs", reloadEveryMs, 1, timerMsMax);
  if (descriptors === "reflection") return reflectionSource(options);
  if (descriptors instanceof URL) return fileSource(fileURLToPath(descriptors), reloadEveryMs ?? fileEveryMsDefault);
  if (descriptors instanceof Uint8Array) return { read: () => Promise.resolve(descriptors) };
  return descriptors;
}

/** Asks the upstream itself, over the connections of its calls. */
function reflectionSource({ upstream, isProxied, reloadEveryMs, reflectionHeader }: SourceOptions): DescriptorSource {
  let omitted: ReadonlyMap<string, string> = new Map();
  return {
    omitted: () => omitted,
    read: async (signal) => {
      await using transport = createGrpcTransport({ baseUrl: upstream, readMaxBytes: reflectionLimits.bytes });
      try {
        const reflected = await readReflection(transport, {
          isMeant: isProxied,
          signal,
          header: reflectionHeader,
        });
        omitted = reflected.omitted;
        return toBinary(FileDescriptorSetSchema, reflected.files);
      } catch (error) {
        throw new Error(`${upstream.authority}: ${messageOf(error)}`, { cause: error });
      }
    },
    watch: (changed) => {
      const stops = [every(reloadEveryMs ?? reflectionEveryMsDefault, changed), watchServers(upstream, changed)];
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}

/** Calls a function when an upstream has other servers, but not too often. Returns what stops it. */
function watchServers(upstream: Upstream, changed: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let dueAtMs = -Infinity;
  const tell = (): void => {
    timer = undefined;
    dueAtMs = performance.now() + serversGapMs;
    changed();
  };
  const stop = upstream.watchServers(() => {
    // No test can tell: it would hold a process that is done for a second, or as long as servers come and go.
    timer ??= setTimeout(tell, Math.max(0, dueAtMs - performance.now())).unref();
  });
  return () => {
    stop();
    clearTimeout(timer);
  };
}

/** Reads a file, and again once two looks have found it the same, and other than the one that was read. */
function fileSource(path: string, everyMs: number): DescriptorSource {
  let taken = "";
  return {
    read: async () => {
      taken = await fingerprintOf(path);
      return await readWhole(path);
    },
    watch: (changed) => {
      let before = taken;
      return every(everyMs, async () => {
        const fingerprint = await fingerprintOf(path);
        // One that is being written is incomplete at first, and one that is being replaced is missing.
        if (fingerprint !== taken && fingerprint === before) {
          taken = fingerprint;
          changed();
        }
        before = fingerprint;
      });
    },
  };
}

async function readWhole(path: string): Promise<Uint8Array> {
  const stats = await stat(path);
  // Reading a pipe or a device might never end.
  if (!stats.isFile()) throw new Error(`${path} is not a regular file`);
  if (stats.size > fileMaxBytes) throw new Error(`${path} is larger than ${fileMaxBytes} bytes`);
  return await readFile(path);
}

/** Returns what is different once a file has changed, has been replaced, or is missing. */
async function fingerprintOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(":");
  } catch (error) {
    return messageOf(error);
  }
}

/** Calls a function again and again, each time so many milliseconds after it was done. Returns what stops it. */
function every(intervalMs: number, run: () => void | Promise<void>): () => void {
  const timer = setTimeout(() => {
    const again = (): void => void timer.refresh();
    Promise.resolve(run()).then(again, again);
  }, intervalMs);
  timer.unref();
  return () => clearTimeout(timer);
}
