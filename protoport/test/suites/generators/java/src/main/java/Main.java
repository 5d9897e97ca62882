import java.io.File;
import java.nio.file.Files;
import java.time.OffsetDateTime;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.CatalogApi;
import org.openapitools.client.model.*;

public class Main {
  public static void main(String[] args) throws Exception {
    CatalogApi catalog = new CatalogApi(new ApiClient().setBasePath(args[0]));
    Book moss = new Book().title("Moss").serial("9007199254740993").cover("AAH+").putLabelsItem("soil", "damp").author("Flora");
    Book created = catalog.v1CatalogCreateBook("green", "moss", moss);
    String soil = created.getLabels().get("soil");
    say("created", created.getState(), created.getSerial(), created.getCover(), soil);
    catalog.v1CatalogCreateBook("green", "fern", new Book().title("Fern"));

    ListBooksResponse first = catalog.v1CatalogListBooks("green", 1, null, null);
    ListBooksResponse second = catalog.v1CatalogListBooks("green", 1, first.getNextPageToken(), null);
    String end = second.getNextPageToken() == null ? "end" : second.getNextPageToken();
    say("pages: " + titles(first.getBooks()) + ", " + titles(second.getBooks()) + ", " + end);

    Book updated = catalog.v1CatalogUpdateBook("green", "moss", "title", new V1CatalogUpdateBookRequest().title("Mosses"));
    say("updated", updated.getTitle(), updated.getAuthor());
    V1CatalogLendBookRequest lend = new V1CatalogLendBookRequest().reader("Ann").dueTime(OffsetDateTime.parse("2026-12-24T18:00:00Z"));
    Loan loan = catalog.v1CatalogLendBook("green", "moss", lend);
    say("lent", loan.getReader(), loan.getState(), loan.getDueTime().toEpochSecond());
    say("out:", titles(catalog.v1CatalogListBooks("green", null, null, BookState.STATE_LENT).getBooks()));
    say("watched:", titles(catalog.v1CatalogWatchBooks("green")));

    File scan = File.createTempFile("scan", null);
    Files.write(scan.toPath(), new byte[] {0, 1, (byte) 254, 13, 10, (byte) 255});
    catalog.v1CatalogPutScan("green", "moss", scan);
    scan.delete();
    File answered = catalog.v1CatalogGetScan("green", "moss");
    say("scan", HexFormat.of().formatHex(Files.readAllBytes(answered.toPath())));
    answered.delete();

    List<String> names = List.of("shelves/green/books/fern", "shelves/green/books/moss");
    say("batch:", titles(catalog.v1CatalogBatchGetBooks("green", names).getBooks()));
    catalog.v1CatalogDeleteBook("green", "moss");
    try {
      catalog.v1CatalogGetBook("green", "moss");
    } catch (ApiException gone) {
      say("gone", gone.getCode(), GoogleRpcStatus.fromJson(gone.getResponseBody()).getMessage());
    }
  }

  private static String titles(List<Book> books) {
    return books.stream().map(Book::getTitle).collect(Collectors.joining(" "));
  }

  private static void say(Object... words) {
    System.out.println(List.of(words).stream().map(String::valueOf).collect(Collectors.joining(" ")));
  }
}
