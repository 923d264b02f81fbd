#!/bin/sh
# scripts/page_with_texts: recognised texts go into the lines of PAGE XML and ALTO, by
# their ids; texts that are there stay, or are replaced with --all; bmuf pack reads the
# texts back.
#
#   tests/scripts/page_with_texts_test.sh PROGRAM
set -eu
bmuf=$1
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
command -v python3 >/dev/null || {
    echo 'python3 is missing'
    exit 77
}
fault() {
    echo "$*"
    exit 1
}

mkdir pages
cat >'pages/p 1.xml' <<'END'
<?xml version="1.0" encoding="UTF-8"?>
<pc:PcGts xmlns:pc="http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15">
  <pc:Page imageFilename="p.pgm" imageWidth="40" imageHeight="30">
    <!-- kept -->
    <pc:TextRegion id="r">
      <pc:TextLine id="a">
        <pc:Coords points="1,1 38,1 38,12 1,12"/>
        <pc:TextStyle fontSize="9"/>
      </pc:TextLine>
      <pc:TextLine id="b (1)">
        <pc:Coords points="1,15 38,15 38,28 1,28"/>
        <pc:Word id="w"><pc:Coords points="1,15 38,15 38,28 1,28"/><pc:TextEquiv><pc:Unicode>old</pc:Unicode></pc:TextEquiv></pc:Word>
        <pc:TextEquiv conf="0.5">
          <pc:Unicode> </pc:Unicode>
        </pc:TextEquiv>
      </pc:TextLine>
      <pc:TextLine id="c">
        <pc:Coords points="1,15 38,15 38,28 1,28"/>
        <pc:TextEquiv index="1"><pc:Unicode>other</pc:Unicode></pc:TextEquiv>
        <pc:TextEquiv index="0" conf="0.5"><pc:Unicode/></pc:TextEquiv>
      </pc:TextLine>
    </pc:TextRegion>
  </pc:Page>
</pc:PcGts>
END
cat >pages/q.xml <<'END'
<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#">
  <Description>
    <MeasurementUnit>pixel</MeasurementUnit>
    <sourceImageInformation><fileName>p.pgm</fileName></sourceImageInformation>
  </Description>
  <Layout><Page WIDTH="40" HEIGHT="30"><PrintSpace><TextBlock>
    <TextLine ID="a" HPOS="1" VPOS="2" WIDTH="30" HEIGHT="9">
      <String CONTENT="" HPOS="1" VPOS="2" WIDTH="3" HEIGHT="9"/>
    </TextLine>
    <TextLine ID="b" HPOS="1" VPOS="12" WIDTH="30" HEIGHT="9"/>
    <TextLine ID="c" HPOS="1" VPOS="22" WIDTH="30" HEIGHT="8">
      <String CONTENT="old" WC="0.5"/><SP/><String CONTENT="words"/><HYP CONTENT="-"/>
    </TextLine>
  </TextBlock></PrintSpace></Page></Layout>
</alto>
END
echo '<mets/>' >pages/mets.xml
{
    printf 'P5 40 30 255\n'
    head -c 1200 /dev/zero | tr '\0' '\310'
} >pages/p.pgm

# reads FOLDER SEQUENCES LABELS: bmuf pack finds so many lines with a text, and
# characters in them.
reads() {
    rm -rf set
    "$bmuf" pack --images "$1" --out set --set features.height=8 --max-left-out 100 \
        >packed 2>log || fault "$(cat log)"
    grep -q "^$2 sequences, .* $3 labels, " packed || fault "$1: $(cat packed)"
}

# With confidences, an id with a blank, and characters that XML reserves.
cat >texts.jsonl <<'END'
{"id": "p_1-a", "text": "one & <two>", "confidence": 0.75}
{"id": "p_1-b_(1)", "text": "new", "confidence": 0.5}
{"id": "p_1-c", "text": "\u00e9t\u00e9", "confidence": null}
{"id": "q-a", "text": "\"a\" b", "confidence": 0.25}
{"id": "q-b", "text": "b", "confidence": 1.0}
{"id": "q-c", "text": "c", "confidence": 1.0}
{"id": "q-d", "error": "damaged"}
END
"$scripts/page_with_texts" texts.jsonl pages/read pages/*.xml 2>said
grep -q 'pages/mets.xml is neither PAGE XML nor ALTO: passed over' said
grep -q ': 4 lines have got a text, 2 kept theirs, 0 have none' said || fault "$(cat said)"
[ ! -e pages/read/mets.xml ] || fault 'XML that is no page was written'

# changes PAGE: what diff has of a page and its copy.
changes() { diff "pages/$1" "pages/read/$1" | sed -n 's/^[<>]  */&/p'; }
cat >wanted <<'END'
>         <pc:TextEquiv conf="0.7500"><pc:Unicode>one &amp; &lt;two&gt;</pc:Unicode></pc:TextEquiv>
<         <pc:TextEquiv index="0" conf="0.5"><pc:Unicode/></pc:TextEquiv>
>         <pc:TextEquiv index="0"><pc:Unicode>été</pc:Unicode></pc:TextEquiv>
END
changes 'p 1.xml' | diff wanted - || fault 'PAGE XML differs'
cat >wanted <<'END'
>       <String CONTENT="&quot;a&quot; b" HPOS="1" VPOS="2" WIDTH="30" HEIGHT="9" WC="0.2500"/>
>     <TextLine ID="b" HPOS="1" VPOS="12" WIDTH="30" HEIGHT="9"><String HPOS="1" VPOS="12" WIDTH="30" HEIGHT="9" CONTENT="b" WC="1.0000"/></TextLine>
END
changes q.xml | sed '/^</d; /?xml/d' | diff wanted - || fault 'ALTO differs'
# Of these lines: 11 of "one & <two>", old, été, 5 of "a" b, b, 10 of "old words-".
reads pages/read 6 33

# Each text is replaced, and the words that spell it go; of trn, without confidences.
cat >texts.trn <<'END'
one (p_1-a)
new text (p_1-b_(1))
  (p_1-c)
new (q-c)
END
mkdir pages/all
"$scripts/page_with_texts" --all texts.trn pages/all pages/p*.xml pages/q.xml 2>said
grep -q ': 4 lines have got a text, 0 kept theirs, 2 have none' said || fault "$(cat said)"
! grep -q 'old\|pc:Word\|conf=' 'pages/all/p 1.xml' || fault "$(cat 'pages/all/p 1.xml')"
! grep -q 'old\|WC=\|<SP\|<HYP' pages/all/q.xml || fault "$(cat pages/all/q.xml)"
reads pages/all 3 14 # one, new text, new

# refused CODE MESSAGE ARGUMENT...
refused() {
    code=$1 message=$2
    shift 2
    found=0
    "$scripts/page_with_texts" "$@" 2>said || found=$?
    [ "$found" = "$code" ] || fault "$found, not $code: $(cat said)"
    grep -qF "$message" said || fault "$(cat said)"
}
refused 73 'pages/read/q.xml is there already' texts.jsonl pages/read pages/q.xml
echo 'x (other-a)' >other.trn
refused 65 'no line of these pages is in other.trn, whose first id is other-a' \
    other.trn none pages/q.xml
[ ! -e none/q.xml ] || fault 'a page without a new text was written'
refused 64 'usage: ' texts.trn
refused 64 'two pages are called q.xml' texts.trn none pages/q.xml ./pages/q.xml
printf '{"id": "a", "text": 5}\n' >bad.jsonl
refused 65 'bad.jsonl:1: its "text" is not a string' bad.jsonl none pages/q.xml
refused 66 'no.trn: No such file' no.trn none pages/q.xml
refused 66 'no.xml: No such file' other.trn none no.xml
printf 'x (a)\ny\n' >bad.trn
refused 65 'bad.trn:2: it is neither JSON nor ends with (id)' bad.trn none pages/q.xml
printf 'x (a)\ny (a)\n' >bad.trn
refused 65 'bad.trn:2: a second text of a' bad.trn none pages/q.xml
echo '<alto>' >bad.xml
refused 65 'bad.xml: not XML' texts.trn none bad.xml
echo '<!DOCTYPE alto><alto/>' >bad.xml
refused 65 'it has a document type' texts.trn none bad.xml
