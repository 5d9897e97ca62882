import json
import sys
from datetime import datetime

from client import ApiClient, ApiException, Book, BookState, CatalogApi, Configuration
from client import V1CatalogLendBookRequest, V1CatalogUpdateBookRequest

catalog = CatalogApi(ApiClient(Configuration(host=sys.argv[1])))


def titles(books):
    return " ".join(book.title for book in books)


moss = Book(title="Moss", serial="9007199254740993", cover="AAH+", labels={"soil": "damp"}, author="Flora")
created = catalog.v1_catalog_create_book("green", book_id="moss", book=moss)
print("created", created.state.value, created.serial, created.cover, created.labels["soil"])
catalog.v1_catalog_create_book("green", book_id="fern", book=Book(title="Fern"))

first = catalog.v1_catalog_list_books("green", page_size=1)
second = catalog.v1_catalog_list_books("green", page_size=1, page_token=first.next_page_token)
print(f"pages: {titles(first.books)}, {titles(second.books)}, {second.next_page_token or 'end'}")

update = V1CatalogUpdateBookRequest(title="Mosses")
updated = catalog.v1_catalog_update_book("green", "moss", update_mask="title", v1_catalog_update_book_request=update)
print("updated", updated.title, updated.author)
due = datetime.fromisoformat("2026-12-24T18:00:00+00:00")
loan = catalog.v1_catalog_lend_book("green", "moss", v1_catalog_lend_book_request=V1CatalogLendBookRequest(reader="Ann", due_time=due))
print("lent", loan.reader, loan.state.value, int(loan.due_time.timestamp()))
print("out:", titles(catalog.v1_catalog_list_books("green", state=BookState.STATE_LENT).books))
print("watched:", titles(catalog.v1_catalog_watch_books("green")))

catalog.v1_catalog_put_scan("green", "moss", body=bytes([0, 1, 254, 13, 10, 255]))
print("scan", catalog.v1_catalog_get_scan("green", "moss").hex())

names = ["shelves/green/books/fern", "shelves/green/books/moss"]
print("batch:", titles(catalog.v1_catalog_batch_get_books("green", names=names).books))
catalog.v1_catalog_delete_book("green", "moss")
try:
    catalog.v1_catalog_get_book("green", "moss")
except ApiException as gone:
    print("gone", gone.status, json.loads(gone.body)["message"])
