// Writes vectors.txt: random patterns, and what Go's regexp, an RE2, says of them. `go run main.go > ../vectors.txt`
//
// A line is a pattern and, for each text, whether it matches whole ("+") or not ("-"), or "!" if the pattern is refused. Patterns and texts
// are ASCII and written in hexadecimal, since bytes and characters are the same there.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"strings"
)

var tokens = []string{
	"a", "b", "c", "ab", "A", "1", "_", "-", " ", "\n", "\t", ".", ".*", ".+", "|", "(", ")", "(?:", "(?i)", "(?s)", "(?i:", "(?-s:", "(?P<n>", "(?x)", "(?=",
	"*", "+", "?", "*?", "??", "{2}", "{0,1}", "{1,}", "{,2}", "{", "}", "{2,1}", "[ab]", "[^a]", "[a-c]", "[]a]", "[^]a]", "[a-]", "[-a]", "[b-a]", "[[:alpha:]]",
	"[[:^digit:]x]", "[[:nope:]]", "[\\d_]", "[\\W]", "[a\\]b]", "[&&b]", "[", "]", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\pL", "\\PL", "\\p{Lu}", "\\p{^Lu}", "\\p{Greek}", "\\p{Nope}",
	"\\A", "\\z", "\\b", "\\B", "^", "$", "\\.", "\\*", "\\n", "\\t", "\\v", "\\x41", "\\x{62}", "\\101", "\\1", "\\0", "\\Qa.b\\E", "\\Q", "\\E", "\\-", "\\<", "\\y", "\\Z", "\\",
}

var texts = []string{
	"", "a", "b", "c", "A", "ab", "ba", "aa", "abc", "aab", "abab", "1", "_", "-", " ", "\n", "\t", "\v", "a\n", "a.b", "a-b", "]", "]a", "{", "}", "a{2}", "a{,2}", "AB", "aB", "&", "<", "\x00", "a b", "1a", "a1_",
}

func main() {
	random := rand.New(rand.NewSource(1))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	shown := make([]string, len(texts))
	for i, text := range texts {
		shown[i] = "x" + hex.EncodeToString([]byte(text))
	}
	fmt.Fprintln(out, strings.Join(shown, " "))
	seen := map[string]bool{}
	for len(seen) < 3000 {
		var pattern strings.Builder
		for n := 1 + random.Intn(5); n > 0; n-- {
			pattern.WriteString(tokens[random.Intn(len(tokens))])
		}
		text := pattern.String()
		if seen[text] {
			continue
		}
		seen[text] = true
		compiled, err := regexp.Compile(text)
		if err != nil {
			fmt.Fprintf(out, "x%s !\n", hex.EncodeToString([]byte(text)))
			continue
		}
		// The longest match of those that begin first is the whole text if any is.
		compiled.Longest()
		outcome := make([]byte, len(texts))
		for i, text := range texts {
			outcome[i] = '-'
			if place := compiled.FindStringIndex(text); place != nil && place[0] == 0 && place[1] == len(text) {
				outcome[i] = '+'
			}
		}
		fmt.Fprintf(out, "x%s %s\n", hex.EncodeToString([]byte(text)), outcome)
	}
}
