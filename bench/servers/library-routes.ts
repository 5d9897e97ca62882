import type { ServiceImpl } from "@connectrpc/connect";
import { booksMax, makeBooks, takeBooks } from "../../test/support/gateway/books.ts";
import { LibraryService } from "../../test/gen/library/v1/library_pb.ts";

const books = makeBooks(booksMax);
const [book] = books;

/** The library: its books are there before anybody asks, so that a call costs what its messages cost. */
export const library: ServiceImpl<typeof LibraryService> = {
  getBook: () => book ?? {},
  listBooks: ({ pageSize }) => ({ books: takeBooks(books, pageSize) }),
  createBook: (created) => created,
  importBooks: ({ books: imported }) => ({ count: imported.length }),
};
