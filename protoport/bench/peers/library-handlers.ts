import { create, toBinary } from "@bufbuild/protobuf";
import { type LibraryServiceServer, ListBooksResponse } from "./gen/library/v1/library.ts";
import { ListBooksResponseSchema } from "../../testing/src/gen/library/v1/library_pb.ts";
import { maxBooks, makeBooks } from "../../testing/src/gateway/books.ts";

const all = toBinary(ListBooksResponseSchema, create(ListBooksResponseSchema, { books: makeBooks(maxBooks) }));
const { books } = ListBooksResponse.decode(all);

/** grpc-js handlers with the stubs and ts-proto messages. */
export const library: LibraryServiceServer = {
  getBook: (_, done) => done(null, books[0]),
  listBooks: ({ request }, done) => done(null, { books: books.slice(0, request.pageSize), nextPageToken: "" }),
  streamBooks: (call) => {
    for (const book of books.slice(0, call.request.pageSize)) call.write(book);
    call.end();
  },
  createBook: ({ request }, done) => done(null, request),
  importBooks: ({ request }, done) => done(null, { count: request.books.length }),
};
