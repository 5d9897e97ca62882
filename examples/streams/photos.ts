// Photos in a folder: uploads and downloads of any size in little memory, with ranges and conditional requests, which
// the gateway leaves to handlers.
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { randomUUID } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { PhotoService, type UploadPhotoRequest } from "../gen/greenhouse/v1/photos_pb.ts";

/** Returns the routes of the photos that are kept in a folder. */
export function photosIn(folder: string): (router: ConnectRouter) => void {
  return (router) =>
    router.service(PhotoService, {
      async uploadPhoto(pieces, { responseHeader }) {
        // Under another name first, so that nobody sees half of it.
        const part = join(folder, `${randomUUID()}.part`);
        try {
          const photo = await keep(pieces, part);
          await rename(part, fileOf(folder, photo.name));
          responseHeader.set("status", "201");
          return photo;
        } finally {
          await rm(part, { force: true });
        }
      },

      async *downloadPhoto({ name }, context) {
        await using file = await openPhoto(fileOf(folder, name));
        const range = await negotiate(file, context);
        if (range === undefined) return;
        for await (const data of file.createReadStream({ ...range, autoClose: false })) {
          yield { contentType: "image/jpeg", data };
        }
      },
    });
}

/** Writes the pieces of a photo to a file. Throws if the client leaves before the last one. */
async function keep(pieces: AsyncIterable<UploadPhotoRequest>, path: string): Promise<{ name: string; bytes: bigint }> {
  const photo = { name: "", bytes: 0n };
  await using file = await open(path, "wx");
  for await (const { name, data } of pieces) {
    photo.name ||= requireName(name);
    const bytes = data?.data ?? Buffer.of();
    await file.writeFile(bytes);
    photo.bytes += BigInt(bytes.byteLength);
  }
  return photo;
}

function fileOf(folder: string, name: string): string {
  return join(folder, `${requireName(name)}.jpg`);
}

// A name from a client is a path as soon as it may have a slash or a dot.
function requireName(name: string): string {
  if (/^[a-z0-9-]{1,64}$/.test(name)) return name;
  throw new ConnectError("a photo is named by small letters, digits and hyphens", Code.InvalidArgument);
}

async function openPhoto(path: string): Promise<FileHandle> {
  try {
    return await open(path);
  } catch {
    throw new ConnectError("there is no such photo", Code.NotFound);
  }
}

/** The first and the last byte of what is sent. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** Chooses the status of a download, and returns what is sent with it; `undefined` for nothing. */
async function negotiate(file: FileHandle, context: HandlerContext): Promise<Range | undefined> {
  const { requestHeader, responseHeader } = context;
  const { size, mtimeMs } = await file.stat();
  const etag = `"${Math.trunc(mtimeMs).toString(36)}-${size.toString(36)}"`;
  responseHeader.set("etag", etag);
  responseHeader.set("accept-ranges", "bytes");
  // RFC 9110 §13.2.2: If-None-Match before If-Range before Range.
  if (requestHeader.get("if-none-match")?.includes(etag) === true) {
    responseHeader.set("status", "304");
    return undefined;
  }
  const isCurrent = (requestHeader.get("if-range") ?? etag) === etag;
  const range = isCurrent ? readRange(requestHeader.get("range"), size) : undefined;
  if (range !== undefined && range.start > range.end) {
    responseHeader.set("status", "416");
    responseHeader.set("content-range", `bytes */${size}`);
    throw new ConnectError(`the photo has ${size} bytes`, Code.OutOfRange);
  }
  if (range !== undefined) {
    responseHeader.set("status", "206");
    responseHeader.set("content-range", `bytes ${range.start}-${range.end}/${size}`);
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  responseHeader.set("content-length", String(end - start + 1));
  return size === 0 ? undefined : { start, end };
}

/**
 * Reads a field of one range (RFC 9110 §14.1.2). Any other is ignored, as §14.2 allows.
 *
 * @returns `undefined` for the whole; a range that ends before it starts for one behind the end
 */
function readRange(field: string | null, size: number): Range | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(field ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  // The last so many bytes.
  if (first === "") return { start: last === "0" ? size : Math.max(0, size - Number(last)), end: size - 1 };
  if (last !== "" && Number(last) < Number(first)) return undefined;
  return { start: Number(first), end: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
}
