// Functions that run in a page or another runtime, without node.
import { createClient } from "@connectrpc/connect";
import { createRestTransport } from "../../../rest-client/src/index.ts";
import { Catalog } from "../gen/catalog/v1/catalog_pb.ts";
import { FileService } from "../gen/files/v1/files_pb.ts";
import { KitchenSink } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";

/** Calls a kitchen sink RPC, and returns its response as a string. */
export async function replaceSink(baseUrl: string): Promise<string> {
  const client = createClient(KitchenSink, createRestTransport({ baseUrl }));
  const { rpc, sink } = await client.replace({ fInt64: 2n ** 53n + 1n, fString: "tree" }, { timeoutMs: 5_000 });
  return `${rpc} ${sink?.fInt64} ${sink?.fString}`;
}

/** Requests a resource that no path can name, and returns the error. */
export async function askForDots(baseUrl: string): Promise<string> {
  const client = createClient(KitchenSink, createRestTransport({ baseUrl }));
  return await client.any({ fString: ".." }).then(
    () => "sent",
    (error: unknown) => (error instanceof Error ? error.message : "?"),
  );
}

/** Creates books in a catalog, and returns their titles from a stream. */
export async function watchTitles(baseUrl: string): Promise<readonly string[]> {
  const client = createClient(Catalog, createRestTransport({ baseUrl }));
  const parent = "shelves/1";
  for (const title of ["one", "two"]) await client.createBook({ parent, bookId: title, book: { title } });
  const titles: string[] = [];
  for await (const { title } of client.watchBooks({ parent })) titles.push(title);
  return titles;
}

/** Uploads pieces, and returns the received length, or the error. */
export async function uploadPieces(baseUrl: string, count: number, byteLength: number): Promise<string> {
  async function* pieces() {
    for (let at = 0; at < count; at++)
      yield { ...(at === 0 && { name: "n" }), file: { data: new Uint8Array(byteLength) } };
  }
  const client = createClient(FileService, createRestTransport({ baseUrl }));
  return await client.upload(pieces()).then(
    ({ length }) => String(length),
    (error: unknown) => (error instanceof Error ? error.message : "?"),
  );
}
