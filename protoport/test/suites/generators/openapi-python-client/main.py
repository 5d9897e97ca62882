import sys
from datetime import datetime
from io import BytesIO

from client.api.catalog import v_1_catalog_batch_get_books as batch_get_books
from client.api.catalog import v_1_catalog_create_book as create_book
from client.api.catalog import v_1_catalog_delete_book as delete_book
from client.api.catalog import v_1_catalog_get_book as get_book
from client.api.catalog import v_1_catalog_get_scan as get_scan
from client.api.catalog import v_1_catalog_lend_book as lend_book
from client.api.catalog import v_1_catalog_list_books as list_books
from client.api.catalog import v_1_catalog_put_scan as put_scan
from client.api.catalog import v_1_catalog_update_book as update_book
from client.api.catalog import v_1_catalog_watch_books as watch_books
from client.client import Client
from client.models import Book, BookLabels, BookState, V1CatalogLendBookBody, V1CatalogUpdateBookBody
from client.types import UNSET, File

# Requests an array instead of the stream's lines.
headers = {"accept": "application/json"}
client = Client(base_url=sys.argv[1], headers=headers, raise_on_unexpected_status=True)


def titles(books):
    return " ".join(book.title for book in books)


labels = BookLabels.from_dict({"soil": "damp"})
moss = Book(title="Moss", serial="9007199254740993", cover="AAH+", labels=labels, author="Flora")
created = create_book.sync("green", client=client, body=moss, book_id="moss")
print("created", created.state.value, created.serial, created.cover, created.labels["soil"])
create_book.sync("green", client=client, body=Book(title="Fern"), book_id="fern")

first = list_books.sync("green", client=client, page_size=1)
second = list_books.sync("green", client=client, page_size=1, page_token=first.next_page_token)
end = "end" if second.next_page_token is UNSET else second.next_page_token
print(f"pages: {titles(first.books)}, {titles(second.books)}, {end}")

updated = update_book.sync("green", "moss", client=client, body=V1CatalogUpdateBookBody(title="Mosses"), update_mask="title")
print("updated", updated.title, updated.author)
due = datetime.fromisoformat("2026-12-24T18:00:00+00:00")
loan = lend_book.sync("green", "moss", client=client, body=V1CatalogLendBookBody(reader="Ann", due_time=due))
print("lent", loan.reader, loan.state.value, int(loan.due_time.timestamp()))
print("out:", titles(list_books.sync("green", client=client, state=BookState.STATE_LENT).books))
print("watched:", titles(watch_books.sync("green", client=client)))

put_scan.sync("green", "moss", client=client, body=File(payload=BytesIO(bytes([0, 1, 254, 13, 10, 255]))))
print("scan", get_scan.sync("green", "moss", client=client).payload.read().hex())

names = ["shelves/green/books/fern", "shelves/green/books/moss"]
print("batch:", titles(batch_get_books.sync("green", client=client, names=names).books))
delete_book.sync("green", "moss", client=client)
gone = get_book.sync_detailed("green", "moss", client=client)
print("gone", gone.status_code.value, gone.parsed.message)
