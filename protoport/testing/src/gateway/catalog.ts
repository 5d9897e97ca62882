import { create } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import type { GatewayOptions } from "../../../gateway/src/index.ts";
import { createTestGateway } from "./test-gateway.ts";
// oxfmt-ignore
import { createReflectionService, ServerReflection, ServerReflectionV1Alpha
} from "../../../gateway/src/reflection/index.ts";
import { type Book, Book_State, BookSchema, Catalog, Loan_State } from "../gen/catalog/v1/catalog_pb.ts";
import type { TestGateway } from "./kitchen-sink.ts";

/** Starts a gateway with an empty catalog and reflection, on a free loopback port. */
export async function startCatalog(options: Partial<GatewayOptions> = {}): Promise<TestGateway> {
  const gateway = createTestGateway({ routes: catalogRoutes(), ...options });
  const address = await gateway.listen({ host: "127.0.0.1", port: 0 });
  return { address, fetch: gateway.fetch, [Symbol.asyncDispose]: () => gateway.close() };
}

function catalogRoutes(): (router: ConnectRouter) => void {
  const books = new Map<string, Book>();
  const scans = new Map<string, { readonly contentType: string; readonly data: Uint8Array }>();
  const find = (name: string): Book => books.get(name) ?? fail(`${name} not found`);
  const of = (parent: string): Book[] => [...books.values()].filter(({ name }) => name.startsWith(`${parent}/books/`));
  const reflection = createReflectionService([Catalog]);
  return (router) => {
    router.service(ServerReflection, reflection).service(ServerReflectionV1Alpha, reflection);
    router.service(Catalog, {
      listBooks({ parent, pageSize, pageToken, state }) {
        const wanted = of(parent).filter((book) => state === Book_State.UNSPECIFIED || book.state === state);
        const [begin, end] = [Number(pageToken), Number(pageToken) + (pageSize || wanted.length)];
        return { books: wanted.slice(begin, end), nextPageToken: end < wanted.length ? String(end) : "" };
      },
      batchGetBooks: ({ names }) => ({ books: names.map(find) }),
      async *watchBooks({ parent }) {
        yield* of(parent);
      },
      getBook: ({ name }) => find(name),
      createBook({ parent, bookId, book = create(BookSchema) }) {
        book.name = `${parent}/books/${bookId}`;
        book.state = Book_State.SHELVED;
        books.set(book.name, book);
        return book;
      },
      updateBook({ book = create(BookSchema), updateMask }) {
        const [kept, sent] = [reflect(BookSchema, find(book.name)), reflect(BookSchema, book)];
        for (const path of updateMask?.paths ?? []) {
          const field = BookSchema.fields.find(({ name }) => name === path) ?? fail(`unknown field ${path}`);
          if (sent.isSet(field)) kept.set(field, sent.get(field));
          else kept.clear(field);
        }
        return find(book.name);
      },
      deleteBook({ name }) {
        find(name);
        books.delete(name);
        return {};
      },
      lendBook({ name, reader, dueTime }) {
        find(name).state = Book_State.LENT;
        return { reader, state: Loan_State.RUNNING, ...(dueTime !== undefined && { dueTime }) };
      },
      putScan({ name, scan }) {
        find(name);
        if (scan !== undefined) scans.set(name, { contentType: scan.contentType, data: scan.data });
        return {};
      },
      getScan: ({ name }) => scans.get(name) ?? fail(`${name} has no scan`),
    });
  };
}

function fail(message: string): never {
  throw new ConnectError(message, Code.NotFound);
}
