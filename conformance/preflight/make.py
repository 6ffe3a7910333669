#!/usr/bin/env python3
"""Writes paths.json and urls.json: hostile arguments, each with a valid twin.

Every case is written out, so that a reader can judge it and another implementation can be tested with it. The tables here
only save typing. Run it from anywhere; it writes beside itself.
"""

import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
WORKSPACE = "/srv/work"
ALLOWED = ["api.example.com", "*.cdn.example.com", "api.example.com:8443", "http://localhost:3000"]


class Cases:
    """Cases in the order they were added, no refused text twice."""

    def __init__(self):
        self.cases = []
        self.seen = set()

    def add(self, trick, refused, accepted):
        if refused not in self.seen:
            self.seen.add(refused)
            self.cases.append({"trick": trick, "refused": refused, "accepted": accepted})


def paths():
    cases = Cases()
    targets = ["etc/passwd", "root/.ssh/id_ed25519"]

    # Spellings of `..` and of the separator that some reader takes for them. The twin uses the same spelling further down,
    # where it stays inside; where the spelling itself is ambiguous, the twin is the plain name.
    dots = [
        ("plain dots", "..", True),
        ("percent dots", "%2e%2e", True),
        ("percent dots, upper case", "%2E%2E", True),
        ("one percent dot", ".%2e", True),
        ("one percent dot first", "%2e.", True),
        ("double percent dots", "%252e%252e", True),
        ("triple percent dots", "%25252e%25252e", True),
        ("percent u dots", "%u002e%u002e", True),
        ("full-width dots", "\uff0e\uff0e", True),
        ("one-dot leaders", "\u2024\u2024", True),
        ("two-dot leader", "\u2025", True),
        ("small full stops", "\ufe52\ufe52", True),
        ("ideographic full stops", "\u3002\u3002", True),
        ("a zero-width space between the dots", ".\u200b.", True),
        ("a soft hyphen between the dots", ".\u00ad.", True),
        ("a zero-width joiner after the dots", "..\u200d", True),
        ("a byte order mark before the dots", "\ufeff..", True),
        ("percent full-width dots", "%ef%bc%8e%ef%bc%8e", True),
        ("overlong dots", "%c0%ae%c0%ae", False),
        ("overlong dots in three bytes", "%e0%80%ae%e0%80%ae", False),
        ("three dots", "...", False),
        ("a space after the dots", ".. ", False),
        ("a space between the dots", ". .", False),
        ("a path parameter after the dots", "..;a=b", False),
        ("a semicolon after the dots", "..;", False),
    ]
    slashes = [
        ("slash", "/", True),
        ("backslash", "\\", True),
        ("percent slash", "%2f", True),
        ("percent slash, upper case", "%2F", True),
        ("percent backslash", "%5c", True),
        ("double percent slash", "%252f", True),
        ("percent u slash", "%u002f", True),
        ("division slash", "\u2215", True),
        ("fraction slash", "\u2044", True),
        ("full-width slash", "\uff0f", True),
        ("full-width backslash", "\uff3c", True),
        ("big solidus", "\u29f8", True),
        ("overlong slash", "%c0%af", False),
    ]
    for dot_name, dot, dot_is_twin in dots:
        for slash_name, slash, slash_is_twin in slashes:
            trick = f"{dot_name}, {slash_name}"
            target = targets[0].replace("/", slash)
            up = (dot + slash) * 2
            twin = f"a/b/c/{up}{target}" if dot_is_twin and slash_is_twin else "a/b/etc/passwd"
            cases.add(trick, f"a{slash}{up}{target}", twin)

    for depth in (1, 2, 3, 8, 20):
        for target in targets + ["proc/self/environ", "work2/key"]:
            cases.add("more steps up", "../" * depth + target, "a/" * depth + target)
            cases.add("down and up again", "a/" + "../" * (depth + 1) + target,
                      "a/" * (depth + 1) + "../" * depth + target)
            cases.add("up from the workspace by its whole path", f"{WORKSPACE}/" + "../" * depth + target,
                      f"{WORKSPACE}/" + "a/" * depth + target)

    for outside in ["/etc/passwd", "/etc/shadow", "/root/.bashrc", "/proc/self/environ", "/proc/self/root/etc/passwd",
                    "/dev/fd/0", "/var/run/docker.sock", "/run/secrets/token", "/home/ada/.aws/credentials",
                    "/tmp/x", "/", "/srv", "/srv/", "/srv/other/file", "/srv/work2/file", "/srv/workshop", "/srv/work.bak",
                    "/srv/wor", "/SRV/work/file", "/srv/WORK/file", "/Srv/Work/file", "/srv/w\u03bfrk/file",
                    "/srv/./../etc/passwd", "/srv/work/../work2/file", "/./etc/passwd", "/.//etc/passwd",
                    "/srv/work/./../../etc/passwd", "/srv//work/../..", "/srv/work/..", "/srv/work/a/../../b"]:
        cases.add("elsewhere by its whole path", outside, f"{WORKSPACE}/{outside.strip('/').replace('..', 'up') or 'a'}")

    for home in ["~", "~/.ssh/id_rsa", "~root/.bashrc", "~ada", "~+/x", "~-/x", "./~/x", "a/~/x", "%7e/.ssh/id_rsa",
                 "%7Eroot/x", "%257e/x", "\uff5e/x", "\u223c/x", "\u02dc/.ssh", "/srv/work/~/x", "\u200b~/x"]:
        cases.add("home folder", home, "home/.ssh/id_rsa~")
    for variable in ["$HOME/.ssh", "${HOME}/.ssh", "$(pwd)/../x", "`pwd`/x", "$PWD", "$OLDPWD/x", "$_", "${IFS}x",
                     "%HOME%/x", "%USERPROFILE%\\x", "%APPDATA%/x", "%ProgramFiles(x86)%/x", "$env:USERPROFILE/x",
                     "\uff04HOME/x", "%24HOME/x", "%24%7bHOME%7d/x"]:
        cases.add("variable", variable, "routes/$id.tsx")
    for url in ["file:///etc/passwd", "file:/etc/passwd", "file:etc/passwd", "FILE:///etc/passwd", "file://localhost/etc/passwd",
                "file%3a///etc/passwd", "file:%2f%2f%2fetc/passwd", "http://evil.example/x", "https:evil.example", "ftp://evil.example/x",
                "smb://evil.example/share", "jar:file:///x.jar!/y", "phar://x.phar/y", "php://filter/resource=x", "data:text/plain,x",
                "expect://id", "glob:///etc/*", "zip://x.zip#y", "view-source:file:///etc/passwd", "netdoc:///etc/passwd",
                "vscode://file/etc/passwd", "x-y+z://h/p", "gopher://h/1", "ldap://h/o", "dict://h:1/d",
                "file\uff1a///etc/passwd", "blob:null/x", "about:blank", "javascript:alert(1)", "nfs://h/e"]:
        cases.add("URL", url, "notes: today/file.txt")
    for windows in ["C:\\Windows\\win.ini", "C:/Windows/win.ini", "c:boot.ini", "C:", "D:..\\x", "\\\\server\\share\\x",
                    "//server/share/x", "\\\\?\\C:\\x", "\\\\.\\pipe\\x", "\\\\.\\PhysicalDrive0", "\\??\\C:\\x",
                    "\\Windows\\win.ini", "\\..\\..\\x", "..\\..\\Windows\\win.ini", "a\\..\\..\\b", "a/..\\..\\b", "a\\../..\\b",
                    "%5c%5cserver%5cshare", "%5C..%5C..%5Cx", "C%3a%5cx", "\uff23:\\x", "\uff3c\uff3cserver\uff3cshare", "Z:/x",
                    "..\\", "a\\..\\..", ".\\..\\x", "a\\.\\..\\..\\x", "\\\\server@80\\share", "\\\\127.0.0.1\\c$\\x",
                    "/\\server/share", "\\/server/share", "C|/x/../../.."]:
        cases.add("Windows form", windows, "src\\main.c")
    for name, control in [("NUL", "\0"), ("line feed", "\n"), ("carriage return", "\r"), ("tab", "\t"), ("escape", "\x1b"),
                          ("delete", "\x7f"), ("next line", "\x85")]:
        for text in [f"a{control}b", f"/srv/work/a.txt{control}", f"a.png{control}../../etc/passwd", f"{control}/etc/passwd",
                     f"..{control}/etc/passwd"]:
            cases.add(name, text, "a.png")
    for code in ["%00", "%0a", "%0d", "%09", "%1b", "%7f", "%2500", "%u0000", "%250a"]:
        for text in [f"a{code}b", f"report.pdf{code}.png", f"../{code}x"]:
            cases.add("encoded control character", text, "report%20final.pdf")
    for dots_text in ["....", ".....", "....//....//x", "..../x", ".. /x", ". ./x", "..  ", " ..", "a/.. /../x", "a/... /x",
                      "...\\x", "..;/x", "..;jsessionid=1/x", "a/..;/..;/x", ".. ;/x", "%2e%2e;/x", "%2e%2e%20/x",
                      "..%20/x", "..%3b/x", "...%2fx", "\u2026/x", "%e2%80%a6/x", "a/\u2025.", "\u2025\u2025/x"]:
        cases.add("dots that some systems read as a step up", dots_text, "a/..b/.c/d...e/x.")
    for mixed in ["..%2f..%5c..\\x", "%2e%2e/..%252fx", "a%2f..%2f..%2fx", "a%2fb\\..\\..\\..\\x", "a%5cb/../../..",
                  "a\\b/../..\\../x", "%2e%2e%5c%2e%2e/x", "\uff0e%2e/x", ".\uff0e/x", "%2e\u200b./x", "a/%2e%2e/%2e%2e/x",
                  "a//../../x", "a/./../../x", "./.././x", "././../x", "a/b/../../../x", ".//..//x", "a%252f..%252f..%252fx",
                  "..%u2215x", "..%u2216x", "%u002e%u002e%u002fx", "..%e2%88%95x", "..%ef%bc%8fx", "%%32%65%%32%65/x",
                  "..%25c0%25afx", "%uff0e%uff0e/x", "a%2f%2e%2e%2f%2e%2e%2fx", "..%01/x"]:
        cases.add("mixed spellings", mixed, "100%/a%20b\\c/d.txt")
    return cases.cases


def urls():
    cases = Cases()
    good = "https://api.example.com/v1/items?id=1"
    tails = ["/", "/latest/meta-data/", ""]

    for host in ["evil.example", "169.254.169.254"]:
        for text in [f"https://api.example.com@{host}/", f"https://api.example.com:443@{host}/", f"https://a:b@{host}/",
                     f"https://api.example.com%40{host}/", f"https://api.example.com%2540{host}/", f"https://{host}@api.example.com/",
                     f"https://{host}:80@api.example.com/", f"https://@{host}/", f"https://@api.example.com@{host}/",
                     f"https://api.example.com\\@{host}/", f"https://api.example.com/\\@{host}/..", f"https://api.example.com?@{host}/",
                     f"https://api.example.com#@{host}/", f"https://api.example.com;@{host}/", f"https://api.example.com&@{host}/",
                     f"https://[::1]@{host}/", f"https://api.example.com\t@{host}/", f"https://api.example.com\uff20{host}/"]:
            cases.add("user information", text, good)

    for scheme in ["file:///etc/passwd", "file://api.example.com/etc/passwd", "ftp://api.example.com/", "gopher://api.example.com/1",
                   "data:text/html,x", "javascript:fetch(1)", "ws://api.example.com/", "wss://api.example.com/", "jar:https://api.example.com/x!/y",
                   "ldap://api.example.com/", "dict://api.example.com:1/d", "blob:https://api.example.com/x", "view-source:https://api.example.com/",
                   "http://api.example.com/", "HTTP://api.example.com/", "//api.example.com/", "/api.example.com", "api.example.com",
                   "https:/api.example.com/", "https:api.example.com/", "https:///api.example.com/", "https:////api.example.com/",
                   "https:\\\\api.example.com\\", "https:/\\api.example.com/", "https:\\/api.example.com/", "https//api.example.com/",
                   "https ://api.example.com/", " https://api.example.com/", "\thttps://api.example.com/", "ht\ntps://api.example.com/",
                   "https:// api.example.com/", "https%3a//api.example.com/", "https:%2f%2fapi.example.com/", "\uff48ttps://api.example.com/",
                   "url:https://api.example.com/", "https:?//api.example.com/", "mailto:a@api.example.com", "netdoc:///etc/passwd",
                   "php://filter/resource=https://api.example.com/", "sftp://api.example.com/", "tftp://api.example.com/", "smb://api.example.com/",
                   "", "https://", "https:///", "https://?x", "https://#x", "https", ":", "://api.example.com"]:
        cases.add("scheme", scheme, "HTTPS://api.example.com/")

    for host in ["api.example.com.evil.example", "evil.example", "evilapi.example.com", "api-example.com", "api.example.com-evil.example",
                 "example.com", "www.example.com", "cdn.example.com", "xcdn.example.com", "evil.example.cdn.example.com.evil.example",
                 "api.example.com..evil.example", "api.example.com.", ".api.example.com", "api..example.com", "api.example.comx",
                 "api.example.co", "api.example.com.br", "api_example.com", "-api.example.com", "api.example.com-", "apiexample.com",
                 "a.api.example.com", "localhost", "localhost.localdomain", "metadata.google.internal", "metadata", "kubernetes.default.svc",
                 "127.0.0.1.nip.io", "localtest.me", "api.example.com%2eevil.example", "api%2eexample.com", "api.example.com%00.evil.example",
                 "api.example.com%0d.evil.example", "a" * 64 + ".cdn.example.com", "api.example.com,evil.example", "api.example.com;evil.example",
                 "api.example.com!evil.example", "api.example.com'evil.example", "api.example.com(evil.example)", "api.example.com{evil.example}",
                 "*.example.com", "*", "api.example.com|evil.example", "api.example.com^evil.example", "api.example.com`evil.example"]:
        for tail in tails[:2]:
            cases.add("host", f"https://{host}{tail}", f"https://a.b.cdn.example.com{tail}")

    for host in ["\u0430pi.example.com", "api.ex\u0430mple.com", "api.example.\u0441om", "\uff41pi.example.com", "api\u3002example\u3002com",
                 "api\uff0eexample\uff0ecom", "api.example\u00ad.com", "api.exam\u200bple.com", "api.example.com\u200b", "\u202eapi.example.com",
                 "api.e\u0301xample.com", "xn--pi-7kc.example.com", "api.xn--exmple-4nf.com", "api.example.com\u2044evil.example",
                 "api.example.com\uff0fevil.example", "api.example.com\uff1fevil.example", "api.example.com\uff03evil.example",
                 "\u24d0pi.example.com", "api.example.c\u2134m", "\u00e4pi.example.com", "api.example\uff61com", "api.ex\u0251mple.com",
                 "%61pi.example.com", "api.example.c%6fm", "%D0%B0pi.example.com"]:
        for tail in tails[:2]:
            cases.add("international spelling", f"https://{host}{tail}", f"https://api.example.com{tail}")

    for address in ["127.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0", "2130706433", "017700000001", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001",
                    "0x7F.1", "0177.0.0.01", "127.0.0.1.", "127.000.000.001", "127.0.0.0x1", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]",
                    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[fe80::1%25eth0]", "[::1]x", "[::1", "::1", "[fd00::1]",
                    "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "[::ffff:a9fe:a9fe]",
                    "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "\u2460\u2461\u2466.0.0.1",
                    "127.0.0.1%00", "127\u30020\u30020\u30021", "1.1", "256.256.256.256", "0x1.0x2", "1e3"]:
        for scheme in ["https", "http"]:
            cases.add("address", f"{scheme}://{address}/", "http://localhost:3000/")

    for port in [":80", ":22", ":8080", ":0443", ":00443", ":+443", ":-443", ":443a", ":", ":99999", ":65536", ":0", ":443:80", ":4 43",
                 ":%34%34%33", ":\uff14\uff14\uff13", ":0x1bb", ":443\\", ":443%2f", ":8443 "]:
        cases.add("port", f"https://api.example.com{port}/", "https://api.example.com:443/")
        cases.add("port", f"http://localhost{port}/", "https://api.example.com:8443/")
    cases.add("port", "https://a.cdn.example.com:8443/", "https://a.cdn.example.com/")
    cases.add("port", "http://localhost:3001/", "http://localhost:3000/a")
    cases.add("port", "https://localhost:3000/", "http://localhost:3000/b")

    for name, control in [("NUL", "\0"), ("line feed", "\n"), ("carriage return", "\r"), ("tab", "\t"), ("space", " "), ("backslash", "\\"),
                          ("zero-width space", "\u200b"), ("right-to-left override", "\u202e"), ("byte order mark", "\ufeff")]:
        for text in [f"https://api{control}.example.com/", f"https://api.example.com{control}/", f"https://api.example.com/{control}x",
                     f"https:{control}//api.example.com/", f"https://api.example.com/x?a={control}b", f"{control}https://api.example.com/"]:
            cases.add(name, text, "https://api.example.com/x?a=%0Ab&c=%20")
    for code in ["%00", "%0a", "%0d%0aHost:%20evil.example", "%0D%0A", "%5c", "%5C..%5c"]:
        cases.add("encoded control character", f"https://api.example.com/{code}", "https://api.example.com/%20")

    for inner in ["http://evil.example", "https://evil.example/x", "HTTPS://EVIL.example", "http%3A%2F%2Fevil.example", "http%253A%252F%252Fevil.example",
                  "%68ttp://evil.example", "https:evil.example", "https:/evil.example", "https:\\\\evil.example".replace("\\", "%5c"),
                  "//evil.example", "http://169.254.169.254/", "https://api.example.com@evil.example/", "https://api.example.com.evil.example/",
                  "http%25253A%25252F%25252Fevil.example", "/%5cevil.example"]:
        for form in ["?url={}", "?next={}&x=1", "/redirect?to={}", "/login?a=b&return={}", "#u={}"]:
            cases.add("URL in a URL", "https://api.example.com" + form.format(inner),
                      "https://api.example.com" + form.format("https://api.example.com/x"))
    for path in ["//evil.example", "//evil.example/x", "/%2fevil.example", "/%2Fevil.example/%2e%2e", "/https://evil.example",
                 "/x/http://evil.example/y", "/proxy/https:/evil.example", "///evil.example"]:
        cases.add("URL in a path", "https://api.example.com" + path, "https://api.example.com/x//y/https")
    return cases.cases


def write(name, head, cases):
    body = ",\n".join("  " + json.dumps(case) for case in cases)
    text = json.dumps(head)[:-1] + ', "cases": [\n' + body + "\n]}\n"
    (HERE / name).write_text(text)
    print(f"{name}: {len(cases)} cases")


write("paths.json", {"workspace": WORKSPACE}, paths())
write("urls.json", {"net_allow": ALLOWED}, urls())
