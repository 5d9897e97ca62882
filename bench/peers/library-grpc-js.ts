import { create, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { LibraryServiceService, type LibraryServiceServer, ListBooksResponse } from "./gen/library/v1/library.ts";
import { ListBooksResponseSchema } from "../../packages/testing/src/gen/library/v1/library_pb.ts";
import { booksMax, makeBooks } from "../../packages/testing/src/gateway/books.ts";
import { serve } from "../servers/serve.ts";

// grpc-js with the stubs and messages of ts-proto.
const all = toBinary(ListBooksResponseSchema, create(ListBooksResponseSchema, { books: makeBooks(booksMax) }));
const { books } = ListBooksResponse.decode(all);

const library: LibraryServiceServer = {
  getBook: (_, done) => done(null, books[0]),
  listBooks: ({ request }, done) => done(null, { books: books.slice(0, request.pageSize), nextPageToken: "" }),
  createBook: ({ request }, done) => done(null, request),
  importBooks: ({ request }, done) => done(null, { count: request.books.length }),
};

await serve(async () => {
  const server = new Server();
  server.addService(LibraryServiceService, library);
  const credentials = ServerCredentials.createInsecure();
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)));
  });
  return { port };
});
