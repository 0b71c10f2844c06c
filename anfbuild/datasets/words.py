"""Words as they stand on signs, labels and screens, for generated text."""

_TEXT = """
account address after airport almond always amber and april arrival autumn avenue bakery balance bank basic battery
before beyond blue boarding bottle bread bridge bright build button cafe camera cancel canvas capital careful
carton castle center change channel charge check cheese chicken choice city classic clean clear click clock close
cloud coast code coffee cold color common confirm contact content control copper copy corner cotton country course
cream credit crystal current danger dark data date deep delivery design detail device digital direct discount
display document door double down dream drive early east edge electric email empty engine enter entrance even event
every exit express fabric factory family farm fast field file final finish fire first flavor flight floor flower
forest forward fragile free fresh friday front fruit full future garden gate general gentle glass global gold good
grand green ground group guide half hand handle harbor heart heavy height hello high history holiday home honey
hotel hour house human image import inside island item january jacket journey july june keep key kitchen label lake
large last leather left lemon level library light limited line little local long lower lunch machine main manual
many market master material maximum meeting member menu message metal middle milk minimum minute mobile model
monday money month morning motion mountain museum music name natural network never night normal north notice number
ocean office open orange order organic original over package page panel paper parking part pass pepper phone photo
platform please pocket point police power premium press price print private product project protect public pure
push quality quick quiet radio rain ready receipt record recycle remote repair reserve rest return right river road
room royal safety sale salt sand save school season second secure select series service shade shadow sharp shelf
ship shop short signal silver simple single sky slow small smart smoke snow soft solid south space special speed
spring square stage standard star start station steel stone stop storage store street strong studio sugar summer
sunday supply surface sweet switch system table taste tea temple ticket time today total touch tower town track
trade train travel tree true tuesday turn under union unit upper valley value vanilla video view village visit
voltage wall warm warning wash water weather week welcome west white wide wild wind window winter wire wood world
yellow young zero zone
"""

WORDS = tuple(_TEXT.split())
