import type { ServiceImpl } from "@connectrpc/connect";
import { maxBooks, makeBooks, takeBooks } from "../../testing/src/gateway/books.ts";
import { LibraryService } from "../../testing/src/gen/library/v1/library_pb.ts";

const books = makeBooks(maxBooks);
const [book] = books;

/** The library's handlers. Books are created in advance, so that a call has no cost except the cost of its messages. */
export const library: ServiceImpl<typeof LibraryService> = {
  getBook: () => book ?? {},
  listBooks: ({ pageSize }) => ({ books: takeBooks(books, pageSize) }),
  streamBooks: async function* ({ pageSize }) {
    yield* takeBooks(books, pageSize);
  },
  createBook: (created) => created,
  importBooks: ({ books: imported }) => ({ count: imported.length }),
};
